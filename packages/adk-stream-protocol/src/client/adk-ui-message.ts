import type { ChatTransport, UIMessage, UIMessageChunk, UITools } from 'ai'

import type { DataParts, MessageMetadata } from '../protocol/message.ts'

/** The data parts in the form that the AI SDK requires. */
type AdkDataParts = { [Name in keyof DataParts]: DataParts[Name] }

interface AdkMessageMetadata extends MessageMetadata {
  /**
   * Set by the client on a message that the person stopped, or that failed before the next one was sent: true if no server has received it,
   * so that it is on this page only.
   */
  readonly unsent?: boolean
}

/** A message of the bridge. `Tools` has the input and output types of the agent's tools: `{ pay: { input: …; output: … } }`. */
export type AdkUIMessage<Tools extends UITools = UITools> = UIMessage<
  AdkMessageMetadata,
  AdkDataParts,
  Tools
>

/** The stream that a chat reads. */
export type AdkChunkStream = ReadableStream<UIMessageChunk<MessageMetadata, AdkDataParts>>

/** The options that a chat passes to its transport. */
export type SendOptions = Parameters<ChatTransport<AdkUIMessage>['sendMessages']>[0]
export type ReconnectOptions = Parameters<ChatTransport<AdkUIMessage>['reconnectToStream']>[0]

/** A schema of zod, or of any library that implements Standard Schema. */
interface Schema<Output> {
  readonly '~standard': { readonly types?: { readonly output: Output } | undefined }
}

/**
 * Infers the tool types of messages from the declarations of the agent's tools: `AdkUIMessage<InferAdkTools<typeof tools>>`. A declaration
 * is a tool of `browserTool`, or the options object of ADK's `FunctionTool`. Pass a list of declarations with literal names, or a record by
 * name. A `FunctionTool` itself does not carry its types: they are then a text that says so.
 */
export type InferAdkTools<Declared> = Declared extends readonly { readonly name: string }[]
  ? { [Tool in Declared[number] as Tool['name']]: InferTool<Tool> }
  : { [Name in keyof Declared]: InferTool<Declared[Name]> }

type InferTool<Tool> = '~types' extends keyof Tool
  ? NonNullable<Tool['~types']>
  : Tool extends AdkTool
    ? { input: NoTypes; output: NoTypes }
    : { input: InferInput<Tool>; output: InferOutput<Tool> }

/**
 * An instance of one of ADK's classes. The type of a `FunctionTool` has its name as any string, its input only as a type argument that no
 * member uses, and its output not at all (ADK 2.0.0). To read the type argument, the page would have to import the types of ADK: a
 * thousand files, for the input alone.
 */
interface AdkTool {
  readonly runAsync: (...given: never[]) => unknown
}

/** Shown by the compiler in the place of a type that cannot be inferred. */
type NoTypes =
  'A FunctionTool does not carry its types. Pass its options to InferAdkTools: const pay = { name: "pay", … } as const; new FunctionTool(pay)'

type InferInput<Tool> = Tool extends { readonly parameters: Schema<infer Input> }
  ? Input
  : Record<string, never>

/** The type of the output schema, or of the function's result if there is no schema. */
type InferOutput<Tool> = Tool extends { readonly output: Schema<infer Output> }
  ? Output
  : Tool extends { readonly execute: (...given: never[]) => infer Result }
    ? Awaited<Result>
    : unknown
