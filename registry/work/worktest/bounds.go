package worktest

import (
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
)

func boundTests() tests {
	return tests{"every_argument_of_a_worker_is_judged": everyArgument}
}

// everyArgument calls each method that writes or searches with one argument at a time out of
// bounds. Methods that only look up a name or a number need no bounds.
func everyArgument(f *fixture) {
	asked := reflect.TypeFor[registry.ForWorkers]()
	lease := reflect.TypeFor[registry.Lease]()
	for i := range asked.NumMethod() {
		method := asked.Method(i)
		zero := func() (in []reflect.Value, leased, structs bool) {
			in = append(in, reflect.ValueOf(f.Context()))
			for n := 1; n < method.Type.NumIn(); n++ {
				of := method.Type.In(n)
				in = append(in, reflect.New(of).Elem())
				leased, structs = leased || of == lease, structs || of != lease && of.Kind() == reflect.Struct
			}
			return in, leased, structs
		}
		_, writes, structs := zero()
		if !writes && !structs {
			continue
		}
		for n := 1; n < method.Type.NumIn(); n++ {
			if method.Type.In(n) == lease {
				continue
			}
			in, _, _ := zero()
			refused := spoil(in[n], func() error { return bounds.Check(in[n].Interface()) })
			if refused == nil {
				f.Errorf("nothing in the argument %s of %s has a bound", method.Type.In(n), method.Name)
				continue
			}
			call := reflect.ValueOf(f.Store).MethodByName(method.Name).Call
			if method.Type.IsVariadic() {
				call = reflect.ValueOf(f.Store).MethodByName(method.Name).CallSlice
			}
			out := call(in)
			err, _ := out[len(out)-1].Interface().(error)
			if !writes && errors.Is(err, registry.ErrNotFound) {
				continue // the API looks up what is asked about first
			}
			if !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), strings.TrimPrefix(refused.Error(), registry.ErrInvalid.Error())) {
				f.Errorf("%s, when %v: %.300v", method.Name, refused, err)
			}
		}
	}
}

// spoil sets the first part of a value that has a bound to something out of bounds, and returns the
// refusal. It returns nil if no part has a bound.
func spoil(v reflect.Value, check func() error) error {
	set := func(all ...any) error {
		for _, one := range all {
			before := reflect.New(v.Type()).Elem()
			before.Set(v)
			v.Set(reflect.ValueOf(one).Convert(v.Type()))
			if err := check(); err != nil {
				return err
			}
			v.Set(before)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return set(strings.Repeat("x", 5<<20))
	case reflect.Int, reflect.Int64:
		return set(math.MaxInt64, math.MinInt64)
	case reflect.Float64:
		return set(2.0)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return set([]byte(`"` + strings.Repeat("x", 9<<20) + `"`))
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return spoil(v.Index(0), check)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if err := spoil(v.Field(i), check); err != nil {
				return err
			}
		}
	}
	return nil
}
