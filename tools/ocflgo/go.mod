// Makes and validates storage roots by ocfl-go, another implementation of OCFL, for tests of `holdfast adopt`. It is a
// module of its own so that nothing of it is a dependency of ours: scripts/testserver.sh builds it.
module github.com/holdfast/holdfast/tools/ocflgo

go 1.26.0

require github.com/srerickson/ocfl-go v0.11.1

require (
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	golang.org/x/crypto v0.47.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)
