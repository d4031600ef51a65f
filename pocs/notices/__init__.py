"""Telling people what concerns them: by e-mail at once or in a daily digest, and by signed webhooks."""
