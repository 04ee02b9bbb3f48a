package ocfl

import (
	"cmp"
	"slices"
	"strings"
)

// registeredExtension reports whether the OCFL community's registry has an extension of this name.
func registeredExtension(name string) bool {
	switch name {
	case "0000-example-extension", "0001-digest-algorithms", flatDirect, hashAndID, hashedNTuple, "0005-mutable-head",
		flatOmitPrefix, nTupleOmitPrefix, "0008-schema-registry", "0009-digest-algorithms",
		"0010-differential-n-tuple-omit-prefix-storage-layout", "0011-direct-clean-path-layout",
		"0012-hash-and-no-prefix-id-n-tuple-storage-layout", "initial":
		return true
	}
	return false
}

// checkTop checks the content of the object's folder (3.1), and lists the version folders.
func (v *validator) checkTop() {
	var folders []string
	for _, n := range v.nodes {
		top, rest, below := strings.Cut(n.path, "/")
		switch {
		case !below && n.kind == fileNode:
			v.checkTopFile(n.path)
			continue
		case !below && n.kind == otherNode:
			continue
		}
		if len(folders) == 0 || folders[len(folders)-1] != top {
			folders = append(folders, top)
		}
		if top == extensionsFolder && below {
			v.checkExtension(n, rest)
		}
	}
	var declared []string
	if v.root != nil {
		declared = v.root.names
	}
	slices.Sort(folders)
	for _, name := range slices.Compact(folders) {
		if name == logsFolder || name == extensionsFolder {
			continue
		}
		_, _, isVersion := parseVersionName(name)
		switch {
		case !isVersion:
			v.fault("E001", name, "a folder that does not belong there")
			if strings.Trim(strings.TrimPrefix(name, "v"), "0123456789") == "" {
				v.fault(versionNameCode(name), name, "not a version name: want v and a number from 1 on")
			}
			continue
		case v.root != nil && !slices.Contains(declared, name):
			v.fault("E001", name, "a version folder that the inventory does not know")
			v.fault("E046", name, "a version folder that the inventory does not know")
		}
		v.versions = append(v.versions, name)
	}
	slices.SortFunc(v.versions, func(a, b string) int {
		x, _, _ := parseVersionName(a)
		y, _, _ := parseVersionName(b)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	})
	for _, name := range declared {
		if !slices.Contains(v.versions, name) {
			v.fault("E046", name, "the inventory has this version, the object has no such folder")
			v.fault("E010", name, "the version's folder is missing")
		}
	}
}

// checkTopFile checks a file in the object's folder. Declarations are checked elsewhere.
func (v *validator) checkTopFile(name string) {
	if name == inventoryName || strings.HasPrefix(name, "0=") {
		return
	}
	algorithm, isSidecar := strings.CutPrefix(name, inventoryName+".")
	if isSidecar && (v.root == nil || algorithm == v.root.inv.Algorithm) {
		return
	}
	v.fault("E001", name, "a file that does not belong there")
	if isSidecar {
		v.fault("E059", name, "a digest of another algorithm than the inventory's, which is %q", v.root.inv.Algorithm)
	}
}

// checkExtension checks a file or folder in the extensions folder (3.9).
func (v *validator) checkExtension(n node, rest string) {
	name, _, below := strings.Cut(rest, "/")
	switch {
	case !below && n.kind == fileNode:
		v.fault("E067", n.path, "a file among the folders of extensions")
	case !registeredExtension(name) && extensionsFolder+"/"+name != EvidenceFolder: // each object of ours has it
		v.fault("W013", extensionsFolder+"/"+name, "not a registered extension")
	}
}

// checkVersionFolder checks the content of a version's folder (3.3).
func (v *validator) checkVersionFolder(version string) {
	content := v.contentDirectory()
	files := 0
	hasContent := false
	for _, n := range v.below(version) {
		if n.path == version {
			break // an empty folder
		}
		rest := n.path[len(version)+1:]
		top, _, below := strings.Cut(rest, "/")
		isFolder := below || n.kind == emptyFolder
		switch {
		case !isFolder && (rest == inventoryName || strings.HasPrefix(rest, inventoryName+".")):
		case !isFolder && n.kind == fileNode:
			v.fault("E015", n.path, "a file that does not belong there")
		case isFolder && top == content:
			hasContent = true
			switch {
			case n.kind != emptyFolder:
				files++
			case below:
				v.fault("E024", n.path, "an empty folder")
			}
		case isFolder:
			v.fault("W002", version+"/"+top, "a folder that does not belong there")
		}
	}
	if hasContent && files == 0 {
		v.fault("W003", version+"/"+content, "a content folder without files")
	}
	if !hasContent && v.like != nil && v.like.below(version+"/") {
		v.fault("E016", version, "no folder %q, although the inventory names files of this version", content)
	}
}

// contentDirectory returns the name that the root inventory declares.
func (v *validator) contentDirectory() string {
	if v.root == nil {
		return defaultContent
	}
	return v.root.inv.ContentDirectory
}

// below returns the nodes in a folder, or the folder itself if it is empty.
func (v *validator) below(folder string) []node {
	find := func(path string) int {
		i, _ := slices.BinarySearchFunc(v.nodes, path, func(n node, p string) int { return strings.Compare(n.path, p) })
		return i
	}
	if i := find(folder); i < len(v.nodes) && v.nodes[i].path == folder {
		return v.nodes[i : i+1]
	}
	// "0" is the byte after the slash, so this is the first path after those below the folder.
	return v.nodes[find(folder+"/"):find(folder+"0")]
}
