package checkm

import "strings"

// column is what a cell of a row means.
type column int

const (
	colURL column = iota
	colAlgorithm
	colDigest
	colSize
	colModified
	colName
	colMIME
	colPrimary
	colLocal
	colCreator
	colTitle
	colDate
	numColumns
	noColumn column = -1
)

// field returns the column's name as it is written in a #%fields line.
func (c column) field() string {
	switch c {
	case colURL:
		return "nfo:fileUrl"
	case colAlgorithm:
		return "nfo:hashAlgorithm"
	case colDigest:
		return "nfo:hashValue"
	case colSize:
		return "nfo:fileSize"
	case colModified:
		return "nfo:fileLastModified"
	case colName:
		return "nfo:fileName"
	case colMIME:
		return "mrt:mimeType"
	case colPrimary:
		return "mrt:primaryIdentifier"
	case colLocal:
		return "mrt:localIdentifier"
	case colCreator:
		return "mrt:creator"
	case colTitle:
		return "mrt:title"
	case colDate:
		return "mrt:date"
	}
	return ""
}

// columnOf returns the column of a name, in any case. The prefix is the writer's to choose,
// but one that is bound to a vocabulary of others makes the name another thing: dc:date is
// not mrt:date. The second names of a column are those of the storage service's own
// manifests.
func columnOf(name string, prefixes map[string]string) column {
	colon := strings.LastIndexByte(name, ':') + 1
	prefix, local := name[:colon], name[colon:]
	if uri, bound := prefixes[prefix]; bound && !known(prefix) && !ourVocabulary(uri) {
		return noColumn
	}
	for c := range numColumns {
		want := c.field()
		if strings.EqualFold(local, want[strings.IndexByte(want, ':')+1:]) {
			return c
		}
	}
	switch strings.ToLower(local) {
	case "primaryid":
		return colPrimary
	case "localid":
		return colLocal
	case "targetfilepath":
		return colName
	case "filecreated":
		return colModified
	}
	return noColumn
}

// columns returns the columns of a kind in their order. Rows of an unknown kind are read
// as far as all kinds with URLs agree.
func (k Kind) columns() []column {
	files := []column{colURL, colAlgorithm, colDigest, colSize, colModified, colName}
	switch {
	case k.Batch():
		return append(files, colPrimary, colLocal, colCreator, colTitle, colDate)
	case k == InContainer:
		return []column{colName, colAlgorithm, colDigest, colSize, colModified, colMIME}
	case k == Unknown:
		return files
	}
	return append(files, colMIME)
}

// key returns the column that no row of the kind can do without.
func (k Kind) key() column {
	if k == InContainer {
		return colName
	}
	return colURL
}

// layout says where in a row each column stands.
type layout struct {
	at    [numColumns]int // position from 0, or -1
	width int             // number of columns a row may have
}

func newLayout(cols []column) layout {
	l := layout{width: len(cols)}
	for c := range l.at {
		l.at[c] = -1
	}
	for i, c := range cols {
		if c != noColumn {
			l.at[c] = i
		}
	}
	return l
}

// fieldColumns reads the names of a #%fields line for a manifest of kind k. prefixes has
// the URIs that the manifest binds, by "p:". It returns
// the names that it does not know and those that stand there twice.
//
// Merritt goes by position alone, so a name that is not known is a harmless misspelling
// as long as all the known ones stand where they always do: it then means the column of
// its position. Once columns are moved it means nothing and its values are left out.
func fieldColumns(k Kind, names []string, prefixes map[string]string) (cols []column, unknown, twice []string) {
	standard := k.columns()
	moved := false
	var seen [numColumns]bool
	for i, name := range names {
		c := columnOf(name, prefixes)
		switch {
		case c == noColumn:
			unknown = append(unknown, name)
		case seen[c]:
			twice = append(twice, name)
			c = noColumn
		default:
			seen[c] = true
			moved = moved || i >= len(standard) || standard[i] != c
		}
		cols = append(cols, c)
	}
	if !moved && len(twice) == 0 {
		for i, c := range cols {
			if c == noColumn && i < len(standard) {
				cols[i] = standard[i]
			}
		}
	}
	return cols, unknown, twice
}

// agrees reports whether every column that l has stands there in o, too.
func (l layout) agrees(o layout) bool {
	for c, at := range l.at {
		if at >= 0 && at != o.at[c] {
			return false
		}
	}
	return true
}
