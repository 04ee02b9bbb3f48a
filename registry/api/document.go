package api

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry/wire"
)

// document puts an operation that huma does not serve into the specification, with an answer of type O.
func document[O any](api huma.API, op *huma.Operation) {
	schemas := api.OpenAPI().Components.Schemas
	documentAs(api, op, "application/json", schemas.Schema(reflect.TypeFor[O](), true, ""))
}

// documentEmpty is document for an operation whose answer has no body.
func documentEmpty(api huma.API, op *huma.Operation) {
	documentAs(api, op, "", nil)
	op.Responses[strconv.Itoa(op.DefaultStatus)].Content = nil
}

func documentAs(api huma.API, op *huma.Operation, contentType string, schema *huma.Schema) {
	schemas := api.OpenAPI().Components.Schemas
	if op.DefaultStatus == 0 {
		op.DefaultStatus = http.StatusOK
	}
	op.Responses = map[string]*huma.Response{
		strconv.Itoa(op.DefaultStatus): {
			Description: http.StatusText(op.DefaultStatus),
			Content:     map[string]*huma.MediaType{contentType: {Schema: schema}},
		},
		"default": {
			Description: "Error",
			Content: map[string]*huma.MediaType{
				"application/problem+json": {Schema: schemas.Schema(reflect.TypeFor[wire.Problem](), true, "")},
			},
		},
	}
	api.OpenAPI().AddOperation(op)
}
