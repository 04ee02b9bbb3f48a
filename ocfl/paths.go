package ocfl

import (
	"slices"
	"strings"
)

// checkLogicalPath refuses paths that the specification does not allow as logical paths (3.5.3.1),
// or that JSON cannot hold.
func checkLogicalPath(path string) error {
	if !utf8Text(path) {
		return &PathError{Path: path, Reason: "not UTF-8"}
	}
	if reason := badElements(path); reason != "" {
		return &PathError{Path: path, Reason: reason}
	}
	if path == "" || path[0] == '/' || path[len(path)-1] == '/' {
		return &PathError{Path: path, Reason: "empty, or begins or ends with a slash"}
	}
	return nil
}

// badElements returns what is wrong with the elements of a path, ignoring a slash at either end, or
// "".
func badElements(path string) string {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	for element := range strings.SplitSeq(path, "/") {
		switch element {
		case "":
			return "has an empty element"
		case ".", "..":
			return "has an element " + element
		}
	}
	return ""
}

// comparePaths orders paths so that a path is directly followed by everything below it.
func comparePaths[T ~string | ~[]byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] == b[i] {
			continue
		}
		if a[i] == '/' {
			return -1
		}
		if b[i] == '/' || a[i] > b[i] {
			return 1
		}
		return -1
	}
	return len(a) - len(b)
}

// conflicts calls found for each pair of paths that are equal, or of which one is a folder of the
// other. It sorts paths.
func conflicts(paths []string, found func(a, b string)) {
	slices.SortFunc(paths, comparePaths[string])
	for i := 1; i < len(paths); i++ {
		if paths[i] == paths[i-1] || strings.HasPrefix(paths[i], paths[i-1]) && paths[i][len(paths[i-1])] == '/' {
			found(paths[i-1], paths[i])
		}
	}
}
