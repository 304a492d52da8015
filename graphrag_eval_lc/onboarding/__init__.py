"""The first hour with an agent of your own: what a project needs is proposed from what the agent does."""
