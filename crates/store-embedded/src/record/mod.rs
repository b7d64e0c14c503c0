//! What people ask for later: receipts, and what operators set.
