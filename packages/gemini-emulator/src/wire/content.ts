import { z } from 'zod'

// In proto3 a missing string is the empty string. Later checks reject empty strings with Google's messages.
const ProtoString = z.string().default('')

/** A function call of the model. Schemas keep unknown keys, so that tests can inspect complete requests. */
export const FunctionCall = z.looseObject({
  id: z.string().optional(),
  name: ProtoString,
  args: z.record(z.string(), z.unknown()).optional(),
})
export type FunctionCall = z.infer<typeof FunctionCall>

/** The result of a function call. */
export const FunctionResponse = z.looseObject({
  id: z.string().optional(),
  name: z.string().optional(),
  response: z.record(z.string(), z.unknown()).optional(),
  willContinue: z.boolean().optional(),
  scheduling: z.enum(['SILENT', 'WHEN_IDLE', 'INTERRUPT']).optional(),
})
export type FunctionResponse = z.infer<typeof FunctionResponse>

export const Blob = z.looseObject({ mimeType: z.string().optional(), data: z.string().optional() })
export type Blob = z.infer<typeof Blob>

/** A part of a content. */
export const Part = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.string().optional(),
  functionCall: FunctionCall.optional(),
  functionResponse: FunctionResponse.optional(),
  inlineData: Blob.optional(),
  fileData: z.looseObject({ mimeType: z.string().optional(), fileUri: ProtoString }).optional(),
  executableCode: z.looseObject({ language: ProtoString, code: ProtoString }).optional(),
  codeExecutionResult: z
    .looseObject({ outcome: ProtoString, output: z.string().optional() })
    .optional(),
})
export type Part = z.infer<typeof Part>

/** A message of the conversation. */
export const Content = z.looseObject({
  role: z.string().optional(),
  parts: z.array(Part).optional(),
})
export type Content = z.infer<typeof Content>

/** A function that the model may call. */
export const FunctionDeclaration = z.looseObject({
  name: ProtoString,
  description: z.string().optional(),
  behavior: z.enum(['BLOCKING', 'NON_BLOCKING', 'UNSPECIFIED']).optional(),
  parameters: z.unknown().optional(),
  parametersJsonSchema: z.unknown().optional(),
})
export type FunctionDeclaration = z.infer<typeof FunctionDeclaration>

export const Tool = z.looseObject({ functionDeclarations: z.array(FunctionDeclaration).optional() })
export type Tool = z.infer<typeof Tool>
