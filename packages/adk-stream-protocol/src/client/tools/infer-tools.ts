/** A schema of zod, or of any library that keeps to Standard Schema. */
interface Schema<Output> {
  readonly '~standard': { readonly types?: { readonly output: Output } | undefined }
}

/**
 * The tools of messages, from how the agent's tools are declared: `AdkUIMessage<InferAdkTools<typeof tools>>`. A declaration is what
 * ADK's `FunctionTool` or `browserTool` is made of; several are a list, each with its literal `name`, or a record by name. A
 * `FunctionTool` itself does not tell its types.
 */
export type InferAdkTools<Declared> = Declared extends readonly { readonly name: string }[]
  ? { [Tool in Declared[number] as Tool['name']]: InferTool<Tool> }
  : { [Name in keyof Declared]: InferTool<Declared[Name]> }

interface InferTool<Tool> {
  input: InferInput<Tool>
  output: InferOutput<Tool>
}

type InferInput<Tool> = Tool extends { readonly parameters: Schema<infer Input> }
  ? Input
  : Record<string, never>

/** What the schema says where there is one, else what the function gives. */
type InferOutput<Tool> = Tool extends { readonly output: Schema<infer Output> }
  ? Output
  : Tool extends { readonly execute: (...given: never[]) => infer Result }
    ? Awaited<Result>
    : unknown
