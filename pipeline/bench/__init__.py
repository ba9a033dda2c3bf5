"""Graph500's protocol: many searches, each checked; in one process, on a GPU, by ranks."""
