import { z } from 'zod'

import { UncheckedArray, UncheckedObject, describeIssue, parseJson } from './client-input.ts'
import type { ErrorCode } from './errors.ts'
import { ProtocolError } from './errors.ts'
import { Digest, Edits, Offers, Payloads, Previews } from './read-responses.ts'
import { ChatId, OpenApprovals } from './stream-request.ts'
import { MAX_POSITION_LENGTH } from './turn-position.ts'

const Id = z.string().min(1).max(256)
const Base64 = z.base64().min(1)
/** The agent of a new chat, if the bridge has several. */
const Agent = z.string().max(64)
/** The tag of the principal that has decided, or written the message. */
const PrincipalTag = z.string().max(64)
const MimeType = z.string().min(1).max(128)
/** How a client that does not watch the chat gets the audio of a requested turn. Default `base64`. */
const RequestAudio = z.enum(['base64', 'none'])

/** The frames that a client may send. The first three are exactly those of the AI SDK's `WebSocketChatTransport`. */
const FRAMES = [
  z.object({
    type: z.literal('send'),
    requestId: Id,
    id: ChatId,
    trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
    messageId: z.string().max(128).nullish(),
    // Read like the body of `POST /stream`, with the same limits.
    messages: UncheckedArray,
    // The fields that `DefaultChatTransport` would add to the body. `headers` and `metadata` are ignored, because the
    // socket was authenticated when it was opened.
    body: z
      .looseObject({
        edits: Edits.optional(),
        payloads: Payloads.optional(),
        previews: Previews.optional(),
        offers: Offers.optional(),
        dialect: z.string().max(64).optional(),
        hold: z.boolean().optional(),
        openApprovals: OpenApprovals.optional(),
        newestMessageId: z.string().max(128).optional(),
        decidedAs: PrincipalTag.optional(),
        positions: z.boolean().optional(),
      })
      .optional(),
    audio: RequestAudio.optional(),
  }),
  z.object({
    type: z.literal('resume'),
    requestId: Id,
    id: ChatId,
    body: z.object({ dialect: z.string().max(64).optional() }).optional(),
    audio: RequestAudio.optional(),
    positions: z.boolean().optional(),
    /** The position after which the client continues to read. */
    after: z.string().max(MAX_POSITION_LENGTH).optional(),
  }),
  z.object({ type: z.literal('abort'), requestId: Id, stop: z.boolean().optional() }),
  z.object({ type: z.literal('leave'), requestId: Id }),
  z.object({ type: z.literal('stop'), id: ChatId, messageId: z.string().max(128).optional() }),

  z.object({
    type: z.literal('decide'),
    decisionId: Id,
    id: ChatId,
    approvalId: Id,
    approved: z.boolean(),
    reason: z.string().max(2_000).optional(),
    args: UncheckedObject.optional(),
    payload: z.unknown().optional(),
    preview: Digest.optional(),
    offer: Digest.optional(),
    decidedAs: PrincipalTag.optional(),
  }),
  z
    .object({
      type: z.literal('tool-output'),
      outputId: Id,
      id: ChatId,
      toolCallId: Id,
      output: z.unknown().optional(),
      errorText: z.string().max(10_000).optional(),
      decidedAs: PrincipalTag.optional(),
    })
    .refine((frame) => 'output' in frame !== 'errorText' in frame, {
      message: 'Send either `output` or `errorText`.',
    }),
  z.object({
    type: z.literal('text'),
    id: ChatId,
    messageId: z.string().max(128).optional(),
    text: z.string().min(1),
    openApprovals: OpenApprovals.optional(),
    agent: Agent.optional(),
    decidedAs: PrincipalTag.optional(),
  }),
  z.object({ type: z.literal('audio'), id: ChatId, data: Base64, mimeType: MimeType }),
  z.object({ type: z.literal('audio-end'), id: ChatId }),
  z.object({ type: z.literal('image'), id: ChatId, data: Base64, mimeType: MimeType }),
  z.object({ type: z.literal('activity'), id: ChatId, state: z.enum(['start', 'end']) }),
  z.object({ type: z.literal('interrupt'), id: ChatId }),
  z.object({
    type: z.literal('watch'),
    id: ChatId,
    audio: z.enum(['binary', 'base64', 'none']).optional(),
    agent: Agent.optional(),
  }),
  z.object({ type: z.literal('unwatch'), id: ChatId }),
  z.object({ type: z.literal('ping'), nonce: z.string().max(128).optional() }),
] as const

/** A frame that a client sends. */
export const ClientFrame = z.discriminatedUnion('type', FRAMES)
export type ClientFrame = z.infer<typeof ClientFrame>

/** The client frame of one type. */
export type ClientFrameOf<Type extends ClientFrame['type']> = Extract<ClientFrame, { type: Type }>

/** Why a frame is invalid, with enough of the frame to identify it. */
export interface FrameFault {
  /** The type of the frame, or `unknown`. */
  readonly frame: string
  readonly requestId: string | undefined
  readonly code: ErrorCode
  readonly message: string
}

/** Reads a text frame. Returns the fault of an invalid frame (WS12). */
export function readClientFrame(bytes: Uint8Array): ClientFrame | { readonly fault: FrameFault } {
  let value: unknown
  try {
    value = parseJson(bytes)
  } catch (thrown) {
    if (!(thrown instanceof ProtocolError)) throw thrown
    const { code, message } = thrown
    return { fault: { frame: 'unknown', requestId: findRequestId(bytes), code, message } }
  }
  const parsed = ClientFrame.safeParse(value)
  if (parsed.success) return parsed.data
  const { type, requestId } = Named.parse(value)
  const message = describeIssue(parsed.error, 'The frame')
  return { fault: { frame: type ?? 'unknown', requestId, code: 'bad-request', message } }
}

/** Returns the request id of a frame that could not be parsed. The AI SDK writes it near the beginning and waits for a response. */
function findRequestId(bytes: Uint8Array): string | undefined {
  const beginning = new TextDecoder('latin1').decode(bytes.subarray(0, 512))
  return /^\{"type":"send","requestId":"([\w-]{1,256})"/.exec(beginning)?.[1]
}

/** The type and request id of a frame of any shape. */
const Named = z
  .object({
    type: z.string().max(64).optional().catch(undefined),
    requestId: Id.optional().catch(undefined),
  })
  .catch({ type: undefined, requestId: undefined })
