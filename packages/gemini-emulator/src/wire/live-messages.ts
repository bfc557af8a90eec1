import { z } from 'zod'

import { Blob, Content, FunctionResponse, Tool, type FunctionCall, type Part } from './content.ts'
import { canonicalJson, protoPath, wrongValue } from './proto-json.ts'

const Anything = z.looseObject({})

// Gemini rejects unknown fields in these objects.
const GenerationConfig = z.strictObject({
  responseModalities: z.array(z.string()).optional(),
  thinkingConfig: z.looseObject({ includeThoughts: z.boolean().optional() }).optional(),
  candidateCount: z.number().optional(),
  maxOutputTokens: z.number().optional(),
  temperature: z.number().optional(),
  topP: z.number().optional(),
  topK: z.number().optional(),
  seed: z.number().optional(),
  presencePenalty: z.number().optional(),
  frequencyPenalty: z.number().optional(),
  speechConfig: z.unknown().optional(),
  mediaResolution: z.unknown().optional(),
  enableAffectiveDialog: z.boolean().optional(),
  translationConfig: z.unknown().optional(),
})

const RealtimeInputConfig = z.strictObject({
  automaticActivityDetection: z
    .strictObject({
      disabled: z.boolean().optional(),
      startOfSpeechSensitivity: z.string().optional(),
      endOfSpeechSensitivity: z.string().optional(),
      prefixPaddingMs: z.number().optional(),
      silenceDurationMs: z.number().optional(),
    })
    .optional(),
  activityHandling: z.string().optional(),
  turnCoverage: z.string().optional(),
  interimTranscriptTimestampEnabled: z.boolean().optional(),
})

export const Setup = z.strictObject({
  model: z.string(),
  generationConfig: GenerationConfig.optional(),
  systemInstruction: Content.optional(),
  tools: z.array(Tool).optional(),
  realtimeInputConfig: RealtimeInputConfig.optional(),
  sessionResumption: z
    .strictObject({ handle: z.string().optional(), transparent: z.boolean().optional() })
    .optional(),
  contextWindowCompression: Anything.optional(),
  inputAudioTranscription: Anything.optional(),
  outputAudioTranscription: Anything.optional(),
  proactivity: Anything.optional(),
  historyConfig: z
    .strictObject({ initialHistoryInClientContent: z.boolean().optional() })
    .optional(),
  avatarConfig: Anything.optional(),
  safetySettings: z.array(z.unknown()).optional(),
  labels: z.record(z.string(), z.string()).optional(),
})
export type Setup = z.infer<typeof Setup>

const ClientContent = z.strictObject({
  turns: z.array(Content).optional(),
  turnComplete: z.boolean().optional(),
})

const RealtimeInput = z.strictObject({
  audio: Blob.optional(),
  video: Blob.optional(),
  text: z.string().optional(),
  media: z.union([Blob, z.array(Blob)]).optional(),
  mediaChunks: z.array(Blob).optional(),
  activityStart: Anything.optional(),
  activityEnd: Anything.optional(),
  audioStreamEnd: z.boolean().optional(),
})
export type RealtimeInput = z.infer<typeof RealtimeInput>

const ToolResponse = z.strictObject({ functionResponses: z.array(FunctionResponse).optional() })

const ContextUpdate = z.strictObject({
  systemInstruction: Content.optional(),
  // An object around the list: an empty list removes all tools, and no object leaves them unchanged.
  tools: z.strictObject({ tools: z.array(Tool).optional() }).optional(),
})
export type ContextUpdate = z.infer<typeof ContextUpdate>

const ClientFrame = z.strictObject({
  setup: Setup.optional(),
  clientContent: ClientContent.optional(),
  realtimeInput: RealtimeInput.optional(),
  toolResponse: ToolResponse.optional(),
  contextUpdate: ContextUpdate.optional(),
})

/** A message of a client. Each frame has exactly one. */
export type ClientMessage =
  | { readonly type: 'setup'; readonly setup: Setup }
  | { readonly type: 'client-content'; readonly content: z.infer<typeof ClientContent> }
  | { readonly type: 'realtime-input'; readonly input: RealtimeInput }
  | { readonly type: 'tool-response'; readonly response: z.infer<typeof ToolResponse> }
  | { readonly type: 'context-update'; readonly update: ContextUpdate }

/** An invalid frame. It closes the connection with this reason. */
export interface InvalidFrame {
  readonly type: 'invalid'
  readonly reason: string
}

/** Parses a frame of a client. */
export function readClientMessage(payload: unknown): ClientMessage | InvalidFrame {
  const json = canonicalJson(payload)
  const parsed = ClientFrame.safeParse(json)
  if (!parsed.success) return { type: 'invalid', reason: describeIssue(parsed.error, json) }
  const messages = listMessages(parsed.data)
  const [message, ...others] = messages
  if (!message) return { type: 'invalid', reason: 'Request contains an invalid argument.' }
  if (others.length > 0) {
    return {
      type: 'invalid',
      reason: "Invalid value (oneof), oneof field 'message_type' is already set.",
    }
  }
  return message
}

function listMessages(frame: z.infer<typeof ClientFrame>): readonly ClientMessage[] {
  const messages: ClientMessage[] = []
  if (frame.setup) messages.push({ type: 'setup', setup: frame.setup })
  if (frame.clientContent) messages.push({ type: 'client-content', content: frame.clientContent })
  if (frame.realtimeInput) messages.push({ type: 'realtime-input', input: frame.realtimeInput })
  if (frame.toolResponse) messages.push({ type: 'tool-response', response: frame.toolResponse })
  if (frame.contextUpdate) messages.push({ type: 'context-update', update: frame.contextUpdate })
  return messages
}

function describeIssue(error: z.ZodError, json: unknown): string {
  const [issue] = error.issues
  if (issue?.code !== 'unrecognized_keys') return wrongValue(error, json).message
  const path = protoPath(issue.path)
  return `Invalid JSON payload received. Unknown name "${issue.keys[0]}"${path && ` at '${path}'`}: Cannot find field.`
}

interface Transcription {
  readonly text: string
}

export interface ModalityTokens {
  readonly modality: string
  readonly tokenCount: number
}

export interface LiveUsage {
  readonly promptTokenCount: number
  readonly responseTokenCount: number
  readonly thoughtsTokenCount?: number
  readonly totalTokenCount: number
  readonly promptTokensDetails: readonly ModalityTokens[]
  readonly responseTokensDetails: readonly ModalityTokens[]
}

export interface ServerContent {
  readonly modelTurn?: { readonly role: 'model'; readonly parts: readonly Part[] }
  readonly inputTranscription?: Transcription
  readonly outputTranscription?: Transcription
  readonly groundingMetadata?: unknown
  readonly interrupted?: true
  readonly generationComplete?: true
  readonly turnComplete?: true
  readonly turnCompleteReason?: string
}

/** A message of the server. Each frame has one of these fields, and optionally `usageMetadata`. */
export interface ServerMessage {
  readonly setupComplete?: Readonly<Record<string, never>>
  readonly serverContent?: ServerContent
  readonly toolCall?: { readonly functionCalls: readonly FunctionCall[] }
  readonly toolCallCancellation?: { readonly ids: readonly string[] }
  readonly goAway?: { readonly timeLeft: string }
  readonly sessionResumptionUpdate?: {
    readonly newHandle: string
    readonly resumable: boolean
    readonly lastConsumedClientMessageIndex?: string
  }
  readonly usageMetadata?: LiveUsage
}
