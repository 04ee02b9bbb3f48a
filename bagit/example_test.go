package bagit_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/holdfast/holdfast/bagit"
)

// A Report lists every fault of a bag, each with its file.
func ExampleValidateFS() {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	bag := fstest.MapFS{
		"bagit.txt":        file(string(bagit.DeclarationText())),
		"manifest-md5.txt": file("d41d8cd98f00b204e9800998ecf8427e  data/empty\n5d41402abc4b2a76b9719d911017c592  data/hello\n"),
		"data/empty":       file(""),
		"data/hello":       file("hullo"),
	}
	report, err := bagit.ValidateFS(context.Background(), bag, bagit.Options{})
	if err != nil {
		panic(err) // of reading; it says nothing about the bag
	}
	fmt.Println("complete:", report.Complete, "valid:", report.Valid)
	for _, fault := range report.Errors() {
		fmt.Println(fault.File, fault.Rule)
	}
	// Output:
	// complete: true valid: false
	// data/hello digest
}
