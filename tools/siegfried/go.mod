// Builds the siegfried server of the tests, with PRONOM's signatures inside. It is a module of its own so that nothing of
// it is a dependency of ours: scripts/testserver.sh builds it.
module github.com/holdfast/holdfast/tools/siegfried

go 1.26

tool github.com/richardlehane/siegfried/cmd/sf

require (
	github.com/richardlehane/characterize v1.0.0 // indirect
	github.com/richardlehane/match v1.0.5 // indirect
	github.com/richardlehane/mscfb v1.0.4 // indirect
	github.com/richardlehane/msoleps v1.0.4 // indirect
	github.com/richardlehane/siegfried v1.11.2 // indirect
	github.com/richardlehane/webarchive v1.0.3 // indirect
	github.com/richardlehane/xmldetect v1.0.2 // indirect
	github.com/ross-spencer/spargo v0.4.1 // indirect
	github.com/ross-spencer/wikiprov v1.0.0 // indirect
	golang.org/x/image v0.24.0 // indirect
	golang.org/x/sys v0.30.0 // indirect
	golang.org/x/text v0.22.0 // indirect
)
