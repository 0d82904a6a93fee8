"""What every search method shares: pools of documents, rankings, their measures, and the protocol."""
