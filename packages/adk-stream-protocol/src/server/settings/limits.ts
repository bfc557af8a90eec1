import * as z from 'zod'

import type { MessageLimits } from '../../protocol/stream-request.ts'
import { AtLeastOne, Count, Interval } from './option-schemas.ts'

/** Limits for the frames of one socket. */
export interface SocketLimits {
  /** Maximum number of frames per second, averaged over two seconds. Audio in frames of 20 ms needs 50. Default 100. */
  readonly maxFramesPerSecond: number
  /** Maximum size of one audio frame, in bytes. Default 64 KiB. */
  readonly maxAudioFrameBytes: number
  /** Maximum number of audio bytes per second. Default 128,000: four times the rate of a 16 kHz microphone. */
  readonly maxAudioBytesPerSecond: number
  /** How long a client may be silent before the server sends a ping, in ms. Default 15,000. */
  readonly keepAliveMs: number
}

/** Limits for requests, sockets and principals: the option `limits` of `createBridge`. Each has a safe default. */
export interface BridgeLimits extends MessageLimits, SocketLimits {
  /** Maximum size of a request body or a socket frame, in bytes. Default 8 MiB. */
  readonly maxBodyBytes: number
  /** Maximum number of running turns. Further messages are rejected with `overloaded`. Default 1,000. */
  readonly maxTurns: number
  /** Maximum number of open sockets. Default 20,000. */
  readonly maxSockets: number
  /**
   * Maximum number of open sockets per client address. Without `trustedProxies`, loopback and private addresses are not counted,
   * because they usually belong to a proxy. Default 1,000.
   */
  readonly maxSocketsPerAddress: number
  /** Maximum number of running turns per principal. Default 16. */
  readonly maxTurnsPerPrincipal: number
  /** Maximum number of open feeds (`GET /events`, `GET /chats/:chatId/events`) per principal. A visible page opens one. Default 64. */
  readonly maxFeedsPerPrincipal: number
  /** Maximum number of queued messages per chat if `whileRunning` is `queue`. Default 8. */
  readonly maxQueued: number
  /** How far a reader may fall behind another reader before it is disconnected, in characters. Default 1 Mi. */
  readonly maxLag: number
  /** How long a reader may read nothing before it is disconnected, in ms. Default 30,000. */
  readonly stallTimeoutMs: number
  /** How much of a running turn is kept for clients that resume it, in characters. Default 8 Mi. */
  readonly maxReplay: number
  /** Maximum number of pending approvals per chat. Default 16. */
  readonly maxPendingPerChat: number
  /** Maximum number of pending approvals per principal. Default 100. */
  readonly maxPendingPerPrincipal: number
  /** Maximum size of a decision's payload, in characters of JSON. Default 65,536. */
  readonly maxPayloadLength: number
  /** How long the leases of a crashed process last, in ms. Other processes then recover its calls and chats. Default 15,000. */
  readonly leaseMs: number
  /**
   * How long the event loop of this process may be blocked before other processes take over its work, in ms. With a SQLite file, a
   * separate thread renews the leases of this process meanwhile. With PostgreSQL, `leaseMs` applies. Default 120,000.
   */
  readonly maxBlockedMs: number
  /** The interval at which the bridge checks deadlines, leases and decisions of other servers, in ms. Default 1,000. */
  readonly sweepMs: number
  /** Maximum number of open sockets per principal. Default 16. */
  readonly maxSocketsPerPrincipal: number
  /**
   * Maximum number of open live sessions per principal, including sessions that are kept for clients that may reconnect. A page keeps
   * the session of every chat that it has talked in. Default 64.
   */
  readonly maxLiveChatsPerPrincipal: number
  /** Maximum number of turns that one socket reads at the same time. Default 32. */
  readonly maxRequestsPerSocket: number
  /** The interval at which the credentials of open sockets and feeds are checked again, in ms. Default 300,000. */
  readonly reauthenticateMs: number
  /** How long a stream or socket may be silent before the server sends a keep-alive comment or a ping, in ms. Default 15,000. */
  readonly keepAliveMs: number
}

const MEBI = 1_048_576

export const DEFAULT_LIMITS: BridgeLimits = {
  maxBodyBytes: 8 * MEBI,
  maxMessages: 100_000,
  maxParts: 64,
  maxResponses: 256,
  maxTextLength: 200_000,
  maxFileBytes: 5 * MEBI,
  fileTypes: [
    'image/png',
    'image/jpeg',
    'image/webp',
    'image/gif',
    'image/heic',
    'image/heif',
    'audio/*',
    'application/pdf',
    'text/plain',
  ],
  maxTurns: 1_000,
  maxSockets: 20_000,
  maxSocketsPerAddress: 1_000,
  maxTurnsPerPrincipal: 16,
  maxFeedsPerPrincipal: 64,
  maxQueued: 8,
  maxLag: MEBI,
  stallTimeoutMs: 30_000,
  maxReplay: 8 * MEBI,
  keepAliveMs: 15_000,
  maxPendingPerChat: 16,
  maxPendingPerPrincipal: 100,
  maxPayloadLength: 65_536,
  leaseMs: 15_000,
  maxBlockedMs: 120_000,
  sweepMs: 1_000,
  maxSocketsPerPrincipal: 16,
  maxLiveChatsPerPrincipal: 64,
  maxRequestsPerSocket: 32,
  maxFramesPerSecond: 100,
  maxAudioFrameBytes: 65_536,
  maxAudioBytesPerSecond: 128_000,
  reauthenticateMs: 300_000,
}

/** Fills in the default of each limit that is not set. */
export function toLimits(limits: Partial<BridgeLimits> = {}): BridgeLimits {
  const defined = Object.entries(limits).filter(([, value]) => value !== undefined)
  return { ...DEFAULT_LIMITS, ...Object.fromEntries(defined) }
}

/** The schema of the option `limits`. */
export const LimitsSchema = z.strictObject({
  maxBodyBytes: AtLeastOne.optional(),
  maxMessages: AtLeastOne.optional(),
  maxParts: AtLeastOne.optional(),
  maxResponses: AtLeastOne.optional(),
  maxTextLength: AtLeastOne.optional(),
  maxFileBytes: Count.optional(),
  fileTypes: z.array(z.string(), { error: 'a list of media types' }).optional(),
  maxTurns: AtLeastOne.optional(),
  maxSockets: Count.optional(),
  maxSocketsPerAddress: Count.optional(),
  maxTurnsPerPrincipal: AtLeastOne.optional(),
  maxFeedsPerPrincipal: Count.optional(),
  maxQueued: Count.optional(),
  maxLag: AtLeastOne.optional(),
  stallTimeoutMs: Interval.optional(),
  maxReplay: Count.optional(),
  keepAliveMs: Interval.optional(),
  maxPendingPerChat: Count.optional(),
  maxPendingPerPrincipal: Count.optional(),
  maxPayloadLength: Count.optional(),
  leaseMs: Interval.optional(),
  maxBlockedMs: Interval.optional(),
  sweepMs: Interval.optional(),
  maxSocketsPerPrincipal: Count.optional(),
  maxLiveChatsPerPrincipal: Count.optional(),
  maxRequestsPerSocket: AtLeastOne.optional(),
  maxFramesPerSecond: AtLeastOne.optional(),
  maxAudioFrameBytes: AtLeastOne.optional(),
  maxAudioBytesPerSecond: AtLeastOne.optional(),
  reauthenticateMs: Interval.optional(),
} satisfies Record<keyof BridgeLimits, z.ZodType>)
