CREATE TABLE members (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, subject TEXT UNIQUE, is_admin BIGINT NOT NULL,
    created BIGINT NOT NULL);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY, member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE, hash TEXT NOT NULL,
    label TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT);

CREATE INDEX tokens_of_member ON tokens (member);

CREATE TABLE repositories (
    name TEXT PRIMARY KEY, version BIGINT NOT NULL, checksum TEXT NOT NULL, modified BIGINT NOT NULL);

CREATE TABLE rights (
    repository TEXT NOT NULL REFERENCES repositories (name) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE, level TEXT NOT NULL,
    PRIMARY KEY (repository, member));

CREATE TABLE entries (
    repository TEXT NOT NULL REFERENCES repositories (name) ON DELETE CASCADE, key TEXT NOT NULL,
    folded TEXT NOT NULL, text TEXT, checksum TEXT NOT NULL, version BIGINT NOT NULL, author TEXT NOT NULL,
    at BIGINT NOT NULL, PRIMARY KEY (repository, key));

CREATE UNIQUE INDEX entries_without_twins ON entries (repository, folded) WHERE text IS NOT NULL;

CREATE INDEX entries_since ON entries (repository, version);

CREATE TABLE history (
    repository TEXT NOT NULL REFERENCES repositories (name) ON DELETE CASCADE, key TEXT NOT NULL,
    version BIGINT NOT NULL, text TEXT, checksum TEXT NOT NULL, author TEXT NOT NULL, at BIGINT NOT NULL,
    PRIMARY KEY (repository, key, version));

CREATE TABLE invitations (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL, repository TEXT, level TEXT, is_admin BIGINT NOT NULL,
    created BIGINT NOT NULL, expires BIGINT NOT NULL, used_by TEXT);

CREATE TABLE visits (
    id TEXT PRIMARY KEY, hash TEXT NOT NULL, member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    form TEXT NOT NULL, expires BIGINT NOT NULL);

CREATE TABLE audit (
    id TEXT PRIMARY KEY, at BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, repository TEXT,
    detail TEXT NOT NULL);

CREATE INDEX audit_of_repository ON audit (repository, id);
