"""What is measured, by subject: every line of the table with its command, its floor and its goals."""

__all__: list[str] = []
