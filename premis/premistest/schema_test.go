package premistest_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/premis/premistest"
)

// The judge itself must refuse what the schema refuses.
func TestValidate_Refuses(t *testing.T) {
	id := `<eventIdentifier><eventIdentifierType>U</eventIdentifierType><eventIdentifierValue>1</eventIdentifierValue></eventIdentifier>`
	for _, in := range []string{
		`<premis/>`,
		`<premis><object/></premis>`,
		`<event>` + id + `<eventDateTime>t</eventDateTime><eventType>x</eventType></event>`,
		`<event>` + id + id + `<eventType>x</eventType><eventDateTime>t</eventDateTime></event>`,
		`<event>` + id + `<eventType/><eventDateTime>t</eventDateTime></event>`,
		`<storage/>`,
	} {
		root, err := premistest.Read(strings.NewReader(strings.Replace(in, ">", ` xmlns="`+"http://www.loc.gov/premis/v3"+`">`, 1)))
		if strings.HasSuffix(in, "/>") && strings.Count(in, "<") == 1 {
			root, err = premistest.Read(strings.NewReader(strings.Replace(in, "/>", ` xmlns="`+"http://www.loc.gov/premis/v3"+`"/>`, 1)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if premistest.Validate(root) == nil {
			t.Errorf("%s passed", in)
		}
	}
}
