"""What of the SDK a system without POSIX modules could import."""

import subprocess
import sys

POSIX = ("fcntl", "grp", "pwd", "resource", "termios", "tty", "uvloop")
_IMPORTS = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {blocked!r}:
            raise ModuleNotFoundError(f"no {{name}} here", name=name)

sys.meta_path.insert(0, Missing())
for name in {blocked!r}:
    sys.modules.pop(name, None)
import party_sdk
found = 0
for each in pkgutil.walk_packages(party_sdk.__path__, "party_sdk."):
    if not each.name.endswith("__main__"):
        importlib.import_module(each.name)
        found += 1
import coterie
print(found)
"""


def test_the_sdk_imports_without_modules_of_posix() -> None:
    code = _IMPORTS.format(blocked=POSIX)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50
