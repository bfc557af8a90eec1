import type { IncomingMessage } from 'node:http'

import { z } from 'zod'

import { Content, Tool } from '../wire/content.ts'
import { badPayload, invalidArgument, type FieldViolation } from '../wire/google-error.ts'
import { canonicalJson, unknownNames, wrongValue } from '../wire/proto-json.ts'

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
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
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
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
  'toolCall',
  'toolResponse',
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
