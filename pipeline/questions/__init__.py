"""The questions that may be asked of a graph, each declared in a file of its own.

The commands, the columns of results, and what ``plan``, ``report`` and batches know follow from
``QUESTIONS`` and ``FORMS``. A declaration is light: it names the code that needs NumPy, which
``load`` imports.
"""

from .betweenness import BETWEENNESS
from .bfs import BFS
from .closeness import CLOSENESS
from .clustering import CLUSTERING
from .components import COMPONENTS
from .cores import CORES
from .degree import DEGREE
from .eccentricity import ECCENTRICITY
from .eigenvector import EIGENVECTOR
from .forest import FOREST
from .harmonic import HARMONIC
from .hits import HITS
from .katz import KATZ
from .labels import LABELS
from .leiden import LEIDEN
from .louvain import LOUVAIN
from .pagerank import PAGERANK
from .path import PATH
from .question import Form, Question, load
from .sssp import SSSP
from .strong import STRONG
from .truss import TRUSS

__all__ = ["EIGENVECTOR", "FORMS", "HITS", "KATZ", "QUESTIONS", "Form", "Question", "load"]

QUESTIONS: dict[str, Question] = {
    question.name: question
    for question in (
        BFS,
        COMPONENTS,
        PAGERANK,
        SSSP,
        PATH,
        BETWEENNESS,
        CLOSENESS,
        HARMONIC,
        ECCENTRICITY,
        HITS,
        EIGENVECTOR,
        KATZ,
        LEIDEN,
        LOUVAIN,
        LABELS,
        CORES,
        DEGREE,
        STRONG,
        CLUSTERING,
        TRUSS,
        FOREST,
    )
}
"""Questions by the command's name."""

FORMS: dict[str, Form] = {
    form.name: form for question in QUESTIONS.values() for form in question.forms
}
"""Forms of questions by the name in a result's metadata."""
