"""`python -m tf_regal`: the command line."""

from tf_regal.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
