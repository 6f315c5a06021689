"""Published files: downloaded, checked, resumed."""
