"""Trials of audits, on labels that we or people made wrong: how good are the list, the count and the certificate?"""
