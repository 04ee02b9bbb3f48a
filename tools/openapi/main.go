// Command openapi lists a Holdfast's newest batches with the client that oapi-codegen makes of
// docs/openapi.json. A test of web/api makes the client, in client.go beside this file, and runs
// this: that it compiles and gets answers is what is tested.
//
//	openapi http://127.0.0.1:8470/api/v1 TOKEN
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, token string) error {
	c, err := NewClientWithResponses(address, WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return fmt.Errorf("make a client of %s: %w", address, err)
	}
	answer, err := c.ListBatchesWithResponse(ctx, &ListBatchesParams{})
	if err != nil {
		return fmt.Errorf("list batches: %w", err)
	}
	if answer.JSON200 == nil {
		return fmt.Errorf("list batches: %s", answer.Body)
	}
	for _, batch := range answer.JSON200.Rows {
		fmt.Println(batch.Id, batch.State)
	}
	return nil
}
