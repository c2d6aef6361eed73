"""What a stream leaves behind in fixed memory."""
