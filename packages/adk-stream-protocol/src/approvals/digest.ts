import { hash } from 'node:crypto'
import canonicalizeExport from 'canonicalize'
import { ApprovalError } from './approval-error.ts'
import { isDeeperThan, MAX_DEPTH } from './plain-json.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'

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
