package checkm

import "strings"

// column is the meaning of a cell of a row.
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

// field returns the column's name in a #%fields line.
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

// columnOf returns the column of a name, in any case. Writers choose their own prefixes. A prefix
// bound to a foreign vocabulary makes it another name: dc:date is not mrt:date. The alternative
// names of columns come from the manifests of Merritt's storage service.
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

// columns returns the columns of a kind in their order. For an unknown kind it returns the columns
// that all kinds with URLs have in common.
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

// key returns the column that every row of the kind must have.
func (k Kind) key() column {
	if k == InContainer {
		return colName
	}
	return colURL
}

// layout holds the position of each column in a row.
type layout struct {
	at    [numColumns]int // position from 0, or -1
	width int             // the most columns a row may have
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

// fieldColumns returns the columns that a #%fields line names, for a manifest of kind k. prefixes
// holds the URIs that the manifest binds, by "p:". It also returns the names that are unknown and
// those that occur twice.
//
// Merritt goes by position alone. So an unknown name is a harmless misspelling as long as all known
// names are in their usual position: it then means the column of its position. Once columns are
// moved, an unknown column is ignored.
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

// agrees reports whether o has all columns of l in the same position.
func (l layout) agrees(o layout) bool {
	for c, at := range l.at {
		if at >= 0 && at != o.at[c] {
			return false
		}
	}
	return true
}
