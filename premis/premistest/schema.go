// Package premistest judges PREMIS documents by the rules of the PREMIS 3.0 schema, which are
// written out in it: tests can do without the schema and a validator.
package premistest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

const premisNS = "http://www.loc.gov/premis/v3"

const many = -1

// rule is one particle of a sequence: an element, how often it must and may stand there.
type rule struct {
	name     string
	min, max int
}

// schema holds the sequences of PREMIS 3.0 (premis-v3-0.xsd) for every element that Holdfast may
// write, and, so that order is judged against the whole schema, those that it does not. Elements
// that are not listed hold text.
func schema() map[string][]rule {
	typeValue := func(prefix string, more ...rule) []rule {
		return append([]rule{{prefix + "Type", 1, 1}, {prefix + "Value", 1, 1}}, more...)
	}
	return map[string][]rule{
		"premis": {{"object", 1, many}, {"event", 0, many}, {"agent", 0, many}, {"rights", 0, many}},
		"object:intellectualEntity": {
			{"objectIdentifier", 1, many},
			{"preservationLevel", 0, many},
			{"significantProperties", 0, many},
			{"originalName", 0, 1},
			{"environmentFunction", 0, many},
			{"environmentDesignation", 0, many},
			{"environmentRegistry", 0, many},
			{"environmentExtension", 0, many},
			{"relationship", 0, many},
			{"linkingEventIdentifier", 0, many},
			{"linkingRightsStatementIdentifier", 0, many},
		},
		"object:representation": {
			{"objectIdentifier", 1, many},
			{"preservationLevel", 0, many},
			{"significantProperties", 0, many},
			{"originalName", 0, 1},
			{"storage", 0, many},
			{"relationship", 0, many},
			{"linkingEventIdentifier", 0, many},
			{"linkingRightsStatementIdentifier", 0, many},
		},
		"object:file": {
			{"objectIdentifier", 1, many},
			{"preservationLevel", 0, many},
			{"significantProperties", 0, many},
			{"objectCharacteristics", 1, many},
			{"originalName", 0, 1},
			{"storage", 0, many},
			{"signatureInformation", 0, many},
			{"relationship", 0, many},
			{"linkingEventIdentifier", 0, many},
			{"linkingRightsStatementIdentifier", 0, many},
		},
		"objectCharacteristics": {
			{"compositionLevel", 0, 1},
			{"fixity", 0, many},
			{"size", 0, 1},
			{"format", 1, many},
			{"creatingApplication", 0, many},
			{"inhibitors", 0, many},
			{"objectCharacteristicsExtension", 0, many},
		},
		"creatingApplication":     {{"creatingApplicationName", 0, 1}, {"creatingApplicationVersion", 0, 1}, {"dateCreatedByApplication", 0, 1}, {"creatingApplicationExtension", 0, many}},
		"fixity":                  {{"messageDigestAlgorithm", 1, 1}, {"messageDigest", 1, 1}, {"messageDigestOriginator", 0, 1}},
		"format":                  {{"formatDesignation", 0, 1}, {"formatRegistry", 0, 1}, {"formatNote", 0, many}},
		"formatDesignation":       {{"formatName", 1, 1}, {"formatVersion", 0, 1}},
		"formatRegistry":          {{"formatRegistryName", 1, 1}, {"formatRegistryKey", 1, 1}, {"formatRegistryRole", 0, 1}},
		"storage":                 {{"contentLocation", 0, 1}, {"storageMedium", 0, 1}},
		"significantProperties":   {{"significantPropertiesType", 0, 1}, {"significantPropertiesValue", 0, 1}, {"significantPropertiesExtension", 0, many}},
		"relationship":            {{"relationshipType", 1, 1}, {"relationshipSubType", 1, 1}, {"relatedObjectIdentifier", 1, many}, {"relatedEventIdentifier", 0, many}, {"relatedEnvironmentPurpose", 0, many}, {"relatedEnvironmentCharacteristic", 0, 1}},
		"objectIdentifier":        typeValue("objectIdentifier"),
		"contentLocation":         typeValue("contentLocation"),
		"linkingEventIdentifier":  typeValue("linkingEventIdentifier"),
		"relatedObjectIdentifier": typeValue("relatedObjectIdentifier", rule{"relatedObjectSequence", 0, 1}),
		"relatedEventIdentifier":  typeValue("relatedEventIdentifier", rule{"relatedEventSequence", 0, 1}),
		"event": {
			{"eventIdentifier", 1, 1},
			{"eventType", 1, 1},
			{"eventDateTime", 1, 1},
			{"eventDetailInformation", 0, many},
			{"eventOutcomeInformation", 0, many},
			{"linkingAgentIdentifier", 0, many},
			{"linkingObjectIdentifier", 0, many},
		},
		"eventIdentifier":         typeValue("eventIdentifier"),
		"eventDetailInformation":  {{"eventDetail", 0, 1}, {"eventDetailExtension", 0, many}},
		"eventOutcomeInformation": {{"eventOutcome", 0, 1}, {"eventOutcomeDetail", 0, many}},
		"eventOutcomeDetail":      {{"eventOutcomeDetailNote", 0, 1}, {"eventOutcomeDetailExtension", 0, many}},
		"linkingAgentIdentifier":  typeValue("linkingAgentIdentifier", rule{"linkingAgentRole", 0, many}),
		"linkingObjectIdentifier": typeValue("linkingObjectIdentifier", rule{"linkingObjectRole", 0, many}),
		"agent": {
			{"agentIdentifier", 1, many},
			{"agentName", 0, many},
			{"agentType", 0, 1},
			{"agentVersion", 0, 1},
			{"agentNote", 0, many},
			{"agentExtension", 0, many},
			{"linkingEventIdentifier", 0, many},
			{"linkingRightsStatementIdentifier", 0, many},
			{"linkingEnvironmentIdentifier", 0, many},
		},
		"agentIdentifier": typeValue("agentIdentifier"),
		"preservationLevel": {
			{"preservationLevelType", 0, 1},
			{"preservationLevelValue", 1, 1},
			{"preservationLevelRole", 0, 1},
			{"preservationLevelRationale", 0, many},
			{"preservationLevelDateAssigned", 0, 1},
		},
		"linkingRightsStatementIdentifier": typeValue("linkingRightsStatementIdentifier"),
		"rights":                           {{"rightsStatement", 0, many}, {"rightsExtension", 0, many}},
		"rightsStatement": {
			{"rightsStatementIdentifier", 1, 1},
			{"rightsBasis", 1, 1},
			{"copyrightInformation", 0, 1},
			{"licenseInformation", 0, 1},
			{"statuteInformation", 0, many},
			{"otherRightsInformation", 0, 1},
			{"rightsGranted", 0, many},
			{"linkingObjectIdentifier", 0, many},
			{"linkingAgentIdentifier", 0, many},
		},
		"rightsStatementIdentifier": typeValue("rightsStatementIdentifier"),
		"copyrightInformation": {
			{"copyrightStatus", 1, 1},
			{"copyrightJurisdiction", 1, 1},
			{"copyrightStatusDeterminationDate", 0, 1},
			{"copyrightNote", 0, many},
			{"copyrightDocumentationIdentifier", 0, many},
			{"copyrightApplicableDates", 0, 1},
		},
		// The schema has a choice here of sequences, which together are this one with one element at least.
		"licenseInformation": {{"licenseDocumentationIdentifier", 0, many}, {"licenseTerms", 0, 1}, {"licenseNote", 0, many}, {"licenseApplicableDates", 0, 1}},
		"statuteInformation": {
			{"statuteJurisdiction", 1, 1},
			{"statuteCitation", 1, 1},
			{"statuteInformationDeterminationDate", 0, 1},
			{"statuteNote", 0, many},
			{"statuteDocumentationIdentifier", 0, many},
			{"statuteApplicableDates", 0, 1},
		},
		"otherRightsInformation": {
			{"otherRightsDocumentationIdentifier", 0, many}, {"otherRightsBasis", 1, 1}, {"otherRightsApplicableDates", 0, 1}, {"otherRightsNote", 0, many},
		},
		"rightsGranted":                      {{"act", 1, 1}, {"restriction", 0, many}, {"termOfGrant", 0, 1}, {"termOfRestriction", 0, 1}, {"rightsGrantedNote", 0, many}},
		"termOfRestriction":                  {{"startDate", 1, 1}, {"endDate", 0, 1}},
		"copyrightDocumentationIdentifier":   typeValue("copyrightDocumentationIdentifier", rule{"copyrightDocumentationRole", 0, 1}),
		"licenseDocumentationIdentifier":     typeValue("licenseDocumentationIdentifier", rule{"licenseDocumentationRole", 0, 1}),
		"statuteDocumentationIdentifier":     typeValue("statuteDocumentationIdentifier", rule{"statuteDocumentationRole", 0, 1}),
		"otherRightsDocumentationIdentifier": typeValue("otherRightsDocumentationIdentifier", rule{"otherRightsDocumentationRole", 0, 1}),
	}
}

// choice lists the elements that the schema lets be empty of each particle but not of all.
func choice() map[string]bool {
	return map[string]bool{
		"format": true, "storage": true, "creatingApplication": true, "eventOutcomeInformation": true, "eventOutcomeDetail": true, "significantProperties": true, "licenseInformation": true,
	}
}

// Node is an element as it was read.
type Node struct {
	Name     string
	Attrs    map[string]string
	Text     string
	Children []*Node
}

// Find returns the elements at a path of names below n.
func (n *Node) Find(path ...string) []*Node {
	found := []*Node{n}
	for _, name := range path {
		var next []*Node
		for _, f := range found {
			for _, c := range f.Children {
				if c.Name == name {
					next = append(next, c)
				}
			}
		}
		found = next
	}
	return found
}

// Read parses a document and refuses elements of another namespace.
func Read(r io.Reader) (*Node, error) {
	d := xml.NewDecoder(r)
	top := &Node{}
	open := []*Node{top}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if len(top.Children) != 1 {
				return nil, fmt.Errorf("%d roots", len(top.Children))
			}
			return top.Children[0], nil
		}
		if err != nil {
			return nil, err
		}
		last := open[len(open)-1]
		switch t := token.(type) {
		case xml.StartElement:
			if t.Name.Space != premisNS {
				return nil, fmt.Errorf("%s is in namespace %q", t.Name.Local, t.Name.Space)
			}
			n := &Node{Name: t.Name.Local, Attrs: make(map[string]string)}
			for _, a := range t.Attr {
				n.Attrs[a.Name.Local] = a.Value
			}
			last.Children = append(last.Children, n)
			open = append(open, n)
		case xml.CharData:
			last.Text += string(t)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// Validate holds an element against the schema, its children included.
func Validate(n *Node) error {
	key := n.Name
	if key == "object" {
		key += ":" + n.Attrs["type"]
	}
	rules, compound := schema()[key]
	if !compound {
		if n.Name == "object" {
			return fmt.Errorf("object of type %q", n.Attrs["type"])
		}
		if len(n.Children) > 0 || strings.TrimSpace(n.Text) == "" {
			return fmt.Errorf("%s: want text, got %q and %d elements", n.Name, n.Text, len(n.Children))
		}
		return nil
	}
	if strings.TrimSpace(n.Text) != "" {
		return fmt.Errorf("%s: text %q between elements", n.Name, n.Text)
	}
	if choice()[n.Name] && len(n.Children) == 0 {
		return fmt.Errorf("%s is empty", n.Name)
	}
	rest := n.Children
	for _, r := range rules {
		count := 0
		for len(rest) > 0 && rest[0].Name == r.name && (r.max == many || count < r.max) {
			if err := Validate(rest[0]); err != nil {
				return err
			}
			rest, count = rest[1:], count+1
		}
		if count < r.min {
			return fmt.Errorf("%s: %d of %s, want at least %d", n.Name, count, r.name, r.min)
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s: %s is out of place", n.Name, rest[0].Name)
	}
	return nil
}
