"""cython-lint over folders, with pycodestyle in this process: by itself it starts pycodestyle anew for each file."""

import sys

import pycodestyle
from cython_lint import cython_lint


class Collected(pycodestyle.StandardReport):
    """What is wrong in one file, as cython-lint has it: line, column, and words that begin with the code."""

    def get_file_results(self) -> int:
        """Keep it, and print nothing."""
        self.found = [
            (self.line_offset + line, column + 1, f"{code} {text}")
            for line, column, code, text, _ in self._deferred_print
        ]
        return self.file_errors


def check_style(line_length: int, filename: str, violations: list[tuple[int, int, str]], ignore: set[str]) -> None:
    """Add what pycodestyle finds, in the place of ``cython_lint.run_pycodestyle``."""
    style = pycodestyle.StyleGuide(
        ignore=sorted(cython_lint.PYCODESTYLE_CODES | ignore), max_line_length=line_length, reporter=Collected
    )
    style.input_file(filename)
    violations.extend(style.options.report.found)


if __name__ == "__main__":
    cython_lint.run_pycodestyle = check_style
    sys.exit(cython_lint.main())
