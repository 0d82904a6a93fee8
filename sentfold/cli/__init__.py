"""The command `sentfold`: one file per command, imported only when the command is called."""
