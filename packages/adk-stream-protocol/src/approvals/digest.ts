import { hash } from 'node:crypto'

import canonicalizeExport from 'canonicalize'

import type { AppChatRef } from '../shared/chat-ref.ts'
import { isObject } from '../protocol/guards.ts'

/** The call that a decision is about. */
export interface Call {
  readonly chat: AppChatRef
  readonly toolCallId: string
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
}

/**
 * Returns the digest that binds a decision to one call: SHA-256, in base64url, over the canonical JSON (RFC 8785) of
 * chat, call, tool and arguments.
 */
export function digestCall({ chat, toolCallId, toolName, args }: Call): string {
  const { appName, principalId, chatId } = chat
  const text = canonicalText([appName, principalId, chatId, toolCallId, toolName, args])
  return hash('sha256', text, 'base64url')
}

/** Returns SHA-256, in base64url, over the canonical JSON of a value. */
export function digestJson(value: unknown): string {
  return hash('sha256', canonicalText([value]), 'base64url')
}

// canonicalize 2.1.0 is a CommonJS module that exports the function itself. Its types describe an ES module.
const canonicalize = canonicalizeExport as unknown as (value: unknown) => string | undefined

function canonicalText(value: readonly unknown[]): string {
  if (isDeeperThan(value, MAX_DEPTH + 1)) {
    throw new ApprovalError(
      'invalid',
      `The arguments are circular or nested deeper than ${MAX_DEPTH} levels.`,
    )
  }
  try {
    return canonicalize(value) ?? ''
  } catch (cause) {
    throw new ApprovalError('invalid', 'The arguments cannot be encoded as JSON.', { cause })
  }
}

/** The maximum nesting depth of arguments and outputs. Code that reads them later is recursive. */
const MAX_DEPTH = 200

/** Returns a copy of a value as JSON carries it. Throws if JSON cannot carry it. */
export function plainJson<Value>(what: string, value: Value): Value {
  if (isDeeperThan(value, MAX_DEPTH)) {
    throw new ApprovalError(
      'invalid',
      `${what} is circular or nested deeper than ${MAX_DEPTH} levels.`,
    )
  }
  try {
    // JSON has no `undefined`. If the type of a value allows it, the stored record contains `null`.
    return JSON.parse(JSON.stringify(value) ?? 'null') as Value
  } catch (cause) {
    throw new ApprovalError('invalid', `${what} cannot be encoded as JSON.`, { cause })
  }
}

/** Returns an output as a record can contain it. Never throws: the tool has taken effect, whatever it returned. */
export function recordable(output: unknown): unknown {
  try {
    return plainJson('The output', output)
  } catch (error) {
    return {
      unrecorded: error instanceof ApprovalError ? error.message : 'The output cannot be read.',
    }
  }
}

/** Returns an output itself if it can be stored as it is, and otherwise as a record contains it. */
export function toStorable(output: unknown): unknown {
  return isRecordable(output) ? output : recordable(output)
}

/** Whether an output is recorded as it is, and an object as an object: `toJSON` of a date or a URL returns a string. */
export function isRecordable(output: unknown): boolean {
  try {
    return !(isObject(output) && 'toJSON' in output) && canCarry(output, MAX_DEPTH)
  } catch {
    // A getter, a proxy or `toJSON` threw.
    return false
  }
}

function canCarry(value: unknown, levels: number): boolean {
  if (!isObject(value)) return typeof value !== 'bigint'
  if (ArrayBuffer.isView(value)) return true
  if ('toJSON' in value) return JSON.stringify([value]) !== ''
  return levels > 0 && Object.values(value).every((item) => canCarry(item, levels - 1))
}

export function isDeeperThan(value: unknown, levels: number): boolean {
  if (!isObject(value) || ArrayBuffer.isView(value)) return false
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}

type ApprovalErrorCode = 'invalid' | 'contended'

/** An error of the ledger itself. A rejected command is not an error but a `Refusal`. */
export class ApprovalError extends Error {
  override readonly name = 'ApprovalError'
  readonly code: ApprovalErrorCode

  constructor(code: ApprovalErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
