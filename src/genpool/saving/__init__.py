"""The saved folder: settings, weights, tokenizer and model card."""
