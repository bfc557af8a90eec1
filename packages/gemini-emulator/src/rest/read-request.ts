import type { IncomingMessage } from 'node:http'

import { z } from 'zod'

import type { FunctionDeclaration, Part } from '../wire/content.ts'
import { Content, Tool } from '../wire/content.ts'
import type { FieldViolation, GoogleError } from '../wire/google-error.ts'
import { badPayload, invalidArgument } from '../wire/google-error.ts'
import { isObject, canonicalJson, unknownNames, wrongValue } from '../wire/proto-json.ts'

const FunctionCallingConfig = z.looseObject({
  mode: z.enum(['MODE_UNSPECIFIED', 'AUTO', 'ANY', 'NONE', 'VALIDATED']).optional(),
  allowedFunctionNames: z.array(z.string()).optional(),
})

export const GenerateContentRequest = z.looseObject({
  contents: z.array(Content).default([]),
  systemInstruction: Content.optional(),
  tools: z.array(Tool).default([]),
  toolConfig: z.looseObject({ functionCallingConfig: FunctionCallingConfig.optional() }).optional(),
  generationConfig: z
    .looseObject({
      thinkingConfig: z.looseObject({ includeThoughts: z.boolean().optional() }).optional(),
    })
    .optional(),
  cachedContent: z.string().optional(),
})
export type GenerateContentRequest = z.infer<typeof GenerateContentRequest>

const CountTokensRequest = z.looseObject({
  contents: z.array(Content).default([]),
  generateContentRequest: GenerateContentRequest.optional(),
})

/** Reads the body as text. Throws if it is larger than Gemini allows. */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Uint8Array>) {
    size += chunk.length
    // Reads and discards the rest: a client does not read the response while it is sending.
    if (size <= MAX_BODY_BYTES) chunks.push(chunk)
    if (size > ABORT_BODY_BYTES) request.destroy()
  }
  if (size > MAX_BODY_BYTES) {
    throw invalidArgument(`Request payload size exceeds the limit: ${MAX_BODY_BYTES} bytes.`)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Parses the body of `generateContent` and `streamGenerateContent`. */
export function readGenerateRequest(body: unknown): GenerateContentRequest {
  rejectUnknownNames(body, GENERATE_FIELDS)
  const canonical = canonicalJson(body)
  const parsed = GenerateContentRequest.safeParse(canonical)
  if (!parsed.success) throw wrongValue(parsed.error, canonical)
  return parsed.data
}

/** Parses the body of `countTokens`, which has contents or a complete request. */
export function readCountRequest(body: unknown): GenerateContentRequest {
  rejectUnknownNames(body, COUNT_FIELDS)
  const canonical = canonicalJson(body)
  const parsed = CountTokensRequest.safeParse(canonical)
  if (!parsed.success) throw wrongValue(parsed.error, canonical)
  const { contents, generateContentRequest } = parsed.data
  return generateContentRequest ?? { contents, tools: [] }
}

/** Parses JSON. Throws Google's error if it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'Unexpected token.'
    throw invalidArgument(`Invalid JSON payload received. ${reason}\n${text.slice(0, 60)}\n^`)
  }
}

function rejectUnknownNames(body: unknown, known: ReadonlySet<string>): void {
  if (!isObject(body)) {
    throw invalidArgument('Invalid JSON payload received. Root element must be a message.')
  }
  const violations: FieldViolation[] = [...unknownNames(body, known, '')]
  for (const [index, content] of list(field(body, 'contents')).entries()) {
    const path = `contents[${index}]`
    violations.push(...unknownNames(content, CONTENT_FIELDS, path))
    for (const [at, part] of list(field(content, 'parts')).entries()) {
      violations.push(...unknownNames(part, PART_FIELDS, `${path}.parts[${at}]`))
    }
  }
  if (violations.length > 0) throw badPayload(violations)
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

function list(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

/** Rejects the conversations that Gemini rejects, with Gemini's messages. */
export function checkContents(contents: readonly Content[], message: string): void {
  const error =
    findMissingField(contents, message) ?? findWrongRole(contents) ?? findBrokenPairing(contents)
  if (error) throw error
}

/** Rejects a Gemini 3 conversation whose current turn lacks the signature of a function call. */
export function checkSignatures(contents: readonly Content[]): void {
  // Gemini checks only the turn since the user's last message. In each step only the first call has a signature.
  const turnStart = contents.findLastIndex(
    (content) => content.role !== 'model' && !responses(content).length,
  )
  for (const [index, content] of contents.entries()) {
    const first = index > turnStart ? calls(content)[0] : undefined
    if (!first || first.thoughtSignature) continue
    throw invalidArgument(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${first.functionCall?.name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    )
  }
}

function findMissingField(contents: readonly Content[], message: string): GoogleError | undefined {
  if (contents.length === 0) {
    return invalidArgument(`* ${message}.contents: contents is not specified\n`)
  }
  const violations = contents.flatMap((content, index) => {
    const path = `${message}.contents[${index}].parts`
    if (!content.parts?.length) return [`* ${path}: contents.parts must not be empty.\n`]
    return content.parts.flatMap((part, at) => listMissingFields(part, `${path}[${at}]`))
  })
  return violations.length > 0 ? invalidArgument(violations.join('')) : undefined
}

function listMissingFields(part: Part, path: string): readonly string[] {
  if (!DATA_FIELDS.some((name) => part[name] !== undefined)) {
    return [`* ${path}.data: required oneof field 'data' must have one initialized field\n`]
  }
  if (part.functionCall?.name === '')
    return [`* ${path}.function_call.name: Name cannot be empty.\n`]
  if (part.functionResponse && !part.functionResponse.name) {
    return [`* ${path}.function_response.name: Name cannot be empty.\n`]
  }
  return []
}

function findWrongRole(contents: readonly Content[]): GoogleError | undefined {
  const known = contents.every(({ role }) => role === undefined || ROLES.has(role))
  return known ? undefined : invalidArgument('Please use a valid role: user, model.')
}

function findBrokenPairing(contents: readonly Content[]): GoogleError | undefined {
  for (const [index, content] of contents.entries()) {
    const adjacent = { before: contents.slice(0, index), after: contents[index + 1] }
    const reason = checkCalls(content, adjacent) ?? checkResponses(content, adjacent)
    if (reason) return invalidArgument(reason)
  }
  if (contents.at(-1)?.role === 'model') {
    return invalidArgument(
      'Please ensure that multiturn requests end with a user role or a function response.',
    )
  }
  return undefined
}

interface Adjacent {
  readonly before: readonly Content[]
  readonly after: Content | undefined
}

function checkCalls(content: Content, { before, after }: Adjacent): string | undefined {
  const called = calls(content).length
  if (called === 0) return undefined
  if (responses(content).length > 0) {
    return 'Please ensure that function call turn contains at least one function_call part which can not be mixed with function_response parts.'
  }
  // Consecutive contents of the model are one turn: ADK sends the text before a call as a separate content.
  if (!before.some(({ role }) => role !== 'model')) {
    return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
  }
  const responded = after ? responses(after).length : 0
  if (responded === 0) {
    return 'Please ensure that function call turn is followed by a function response turn.'
  }
  if (responded !== called) {
    return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
  }
  return undefined
}

function checkResponses(content: Content, { before }: Adjacent): string | undefined {
  if (responses(content).length === 0) return undefined
  const previous = before.at(-1)
  if (previous && calls(previous).length > 0) return undefined
  return 'Please ensure that function response turn comes immediately after a function call turn.'
}

function calls(content: Content): readonly Part[] {
  return content.parts?.filter((part) => part.functionCall) ?? []
}

function responses(content: Content): readonly Part[] {
  return content.parts?.filter((part) => part.functionResponse) ?? []
}

const ROLES: ReadonlySet<string> = new Set(['user', 'model', 'function'])

const DATA_FIELDS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
] as const

/** Rejects the tools that Gemini rejects, with Gemini's messages. */
export function checkTools(request: GenerateContentRequest): void {
  const violations = request.tools.flatMap((tool, toolIndex) =>
    (tool.functionDeclarations ?? []).flatMap(({ name }, index) =>
      FUNCTION_NAME.test(name)
        ? []
        : [
            `* GenerateContentRequest.tools[${toolIndex}].function_declarations[${index}].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n`,
          ],
    ),
  )
  if (violations.length > 0) throw invalidArgument(violations.join(''))

  const names = declaredFunctions(request).map(({ name }) => name)
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate !== undefined) {
    throw invalidArgument(`Duplicate function declaration found: ${duplicate}`)
  }
  checkCallingConfig(request, new Set(names))
}

export function declaredFunctions(request: GenerateContentRequest): readonly FunctionDeclaration[] {
  return request.tools.flatMap((tool) => tool.functionDeclarations ?? [])
}

function checkCallingConfig(request: GenerateContentRequest, names: ReadonlySet<string>): void {
  const config = request.toolConfig?.functionCallingConfig
  if (!config) return
  if (names.size === 0) {
    throw invalidArgument('Function calling config is set without function_declarations.')
  }
  const allowed = config.allowedFunctionNames ?? []
  if (allowed.length > 0 && config.mode !== 'ANY' && config.mode !== 'VALIDATED') {
    throw invalidArgument(
      '`allowed_function_names` should be set only when function calling mode is ANY.',
    )
  }
  const undeclared = allowed.find((name) => !names.has(name))
  if (undeclared !== undefined) {
    throw invalidArgument(
      `\`allowed_function_names\` should be a subset of the declared functions; ${undeclared} is not declared.`,
    )
  }
}

const FUNCTION_NAME = /^[a-zA-Z_][\w.:-]{0,63}$/

const GENERATE_FIELDS: ReadonlySet<string> = new Set([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'safetySettings',
  'generationConfig',
  'cachedContent',
  'serviceTier',
  'store',
  'labels',
  'continuationToken',
])

const COUNT_FIELDS: ReadonlySet<string> = new Set(['model', 'contents', 'generateContentRequest'])

const CONTENT_FIELDS: ReadonlySet<string> = new Set(['role', 'parts'])

const PART_FIELDS: ReadonlySet<string> = new Set([
  ...DATA_FIELDS,
  'thought',
  'thoughtSignature',
  'videoMetadata',
  'partMetadata',
  'mediaResolution',
  'mediaProcessing',
  'audioTranscription',
  'speechMetadata',
])

const MAX_BODY_BYTES = 20 * 1024 * 1024
const ABORT_BODY_BYTES = 10 * MAX_BODY_BYTES
