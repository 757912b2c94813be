//! What goes wrong with summaries and with windows, and what then stands in the session.
