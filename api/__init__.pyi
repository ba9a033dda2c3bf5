from ._version import __version__ as __version__
from .partition.errors import BusyError as BusyError
from .partition.errors import DelegraphError as DelegraphError
from .partition.errors import InputError as InputError
from .pipeline.api import bench as bench
from .pipeline.api import build as build
from .pipeline.api import info as info
from .pipeline.api import open as open
from .pipeline.api import open_store as open_store
from .pipeline.api import plan as plan
from .pipeline.api import report as report
from .pipeline.api import validate as validate
from .pipeline.edge_lists import convert as convert
from .pipeline.edge_lists import generate as generate
from .pipeline.functions import *  # noqa: F403 - the questions
from .pipeline.graph import Graph as Graph
from .pipeline.result import Result as Result
from .pipeline.sql_tables import register as register
