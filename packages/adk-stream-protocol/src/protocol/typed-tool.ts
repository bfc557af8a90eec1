/**
 * A tool that carries the types of its calls, for `InferAdkTools`. The property exists in types only.
 *
 * @inline
 */
export interface TypedTool<Name extends string, Input, Output> {
  readonly name: Name
  readonly '~types'?: { input: Input; output: Output }
}
