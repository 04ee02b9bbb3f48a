package checkm_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/checkm"
)

const manifest = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%prefix | mrt: | http://merritt.cdlib.org/terms#
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:mimeType
https://example.org/1.tif | md5 | d41d8cd98f00b204e9800998ecf8427e | 0 | | plates/1.tif | image/tiff
https://example.org/2.tif | md5 | d41d8cd9 | 0 | | plates/2.tif | image/tiff
#%eof
`

// A row that is wrong is refused alone, with everything that is wrong with it.
func ExampleReader_Next() {
	r := checkm.NewReader(strings.NewReader(manifest), checkm.Options{})
	for {
		row, faults, err := r.Next()
		if errors.Is(err, io.EOF) {
			return // the manifest is sound
		}
		if err != nil {
			panic(err)
		}
		if checkm.Refused(faults) {
			fmt.Printf("line %d, column %d: %s\n", faults[0].Line, faults[0].Column, faults[0].Rule)
			continue
		}
		fmt.Println(row.Name, row.Algorithm, row.Size)
	}
	// Output:
	// plates/1.tif md5 0
	// line 7, column 3: digest
}

// Check judges a whole manifest.
func ExampleCheck() {
	report, err := checkm.Check(strings.NewReader(manifest), checkm.Options{})
	fmt.Println(report.Kind, report.Rows, report.Refused, report.Errors, err)
	// Output: object-manifest 2 1 1 <nil>
}
