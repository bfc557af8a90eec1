import { StoreError, type StoreErrorCode } from '../store-error.ts'

/** An error of the database as a `StoreError`, and whether the same work may succeed at once if it is tried again. */
export interface Failure {
  readonly error: StoreError
  readonly isWorthRetrying: boolean
  /** Whether the connection is unusable. It is then not known whether the work was committed. */
  readonly isConnectionLost: boolean
}

/** Classifies an error of `pg` or of the network. */
export function classify(cause: unknown): Failure {
  if (cause instanceof StoreError) return { ...LASTING, error: cause }
  const state = readField(cause, 'code')
  const message = readField(cause, 'message')
  const isSqlState = /^[0-9A-Z]{5}$/.test(state)
  const known = STATES[state] ?? CLASSES[state.slice(0, 2)]
  if (isSqlState && known !== undefined) {
    const [code, sentence, retry] = known
    return {
      error: new StoreError(code, sentence, { cause }),
      isWorthRetrying: retry !== undefined,
      isConnectionLost: retry === 'reconnect',
    }
  }
  // Codes of the network begin with E, such as EPIPE.
  if (isSqlState && !state.startsWith('E')) {
    const sentence = 'PostgreSQL rejected a statement. See `cause`.'
    return { ...LASTING, error: new StoreError('unavailable', sentence, { cause }) }
  }
  if (/timeout exceeded when trying to connect/i.test(message)) {
    const sentence =
      'No connection to PostgreSQL became free in time. Try again, or give the pool more connections.'
    return { ...LASTING, error: new StoreError('busy', sentence, { cause }) }
  }
  if (/end on the pool/i.test(message)) {
    const sentence = 'The pool was ended. Close the store before its pool.'
    return { ...LASTING, error: new StoreError('closed', sentence, { cause }) }
  }
  return {
    error: new StoreError('unavailable', describeNetworkError(state, message), { cause }),
    isWorthRetrying: state !== 'ENOTFOUND',
    isConnectionLost: true,
  }
}

const LASTING = { isWorthRetrying: false, isConnectionLost: false }

type Known = readonly [code: StoreErrorCode, sentence: string, retry?: 'retry' | 'reconnect']

const RESTARTING: Known = [
  'unavailable',
  'PostgreSQL is starting, stopping or was restarted. Try again in a moment.',
  'reconnect',
]

const DENIED: Known = [
  'misconfigured',
  'PostgreSQL refused the user or the password. Check the connection string.',
]

/** What to do about the errors that have a `SQLSTATE`. */
const STATES: Readonly<Record<string, Known>> = {
  '25006': [
    'read-only',
    'The database is read-only. Connect to the primary server, not to a replica.',
  ],
  '28000': DENIED,
  '28P01': DENIED,
  '3D000': [
    'misconfigured',
    'The database does not exist. Create it, or change the connection string.',
  ],
  '40001': ['busy', 'Other transactions interfered. Try again.', 'retry'],
  '40P01': ['busy', 'Other transactions interfered. Try again.', 'retry'],
  '42501': [
    'misconfigured',
    'The user of the connection lacks a right. Grant USAGE and CREATE on the schema of the store, and its tables.',
  ],
  '42P01': [
    'corrupt',
    'A table of the store is missing. Restore the schema, or choose an empty one so that it is created.',
  ],
  '42703': [
    'corrupt',
    'A column of the store is missing. Restore the schema, or choose an empty one so that it is created.',
  ],
  '53100': ['full', 'The disk of the database is full. Nothing was stored. Free some space.'],
  '53200': ['busy', 'The database is out of memory. Try again in a moment.'],
  '53300': [
    'busy',
    'PostgreSQL accepts no more connections. Try again, use smaller pools, or raise max_connections.',
    'retry',
  ],
  '54000': [
    'invalid',
    'A name or an id is too long for an index of PostgreSQL. Use at most 800 bytes.',
  ],
  '55P03': ['busy', 'Another transaction has locked the rows. Try again in a moment.'],
  '57014': [
    'busy',
    'The statement took longer than its timeout and was cancelled. Try again in a moment.',
  ],
  '57P01': RESTARTING,
  '57P02': RESTARTING,
  '57P03': RESTARTING,
  '58030': ['unavailable', 'PostgreSQL could not read or write its files. Check its disk.'],
}

const CLASSES: Readonly<Record<string, Known>> = {
  '08': [
    'unavailable',
    'The connection to PostgreSQL was lost. Try again in a moment.',
    'reconnect',
  ],
  XX: ['corrupt', 'PostgreSQL reports an internal error or damaged data. See `cause`.'],
}

function describeNetworkError(code: string, message: string): string {
  if (code === 'ENOTFOUND') return 'The host of PostgreSQL is unknown. Check the connection string.'
  if (code === 'ECONNREFUSED')
    return 'PostgreSQL does not accept connections at this address. Check the connection string, and that the server runs.'
  return `PostgreSQL cannot be reached (${code === '' ? message : code}). Try again in a moment.`
}

/** The unique constraint that a statement violated, if that is why it failed. */
export function violatedConstraint(cause: unknown): string | undefined {
  return readField(cause, 'code') === '23505' ? readField(cause, 'constraint') : undefined
}

/** Whether a prepared statement could not be used: it is missing, exists already, or its tables have changed. */
export function isPreparedLost(cause: unknown): boolean {
  const state = readField(cause, 'code')
  if (state === '0A000') return readField(cause, 'message').includes('cached plan')
  return state === '26000' || state === '42P05'
}

function readField(cause: unknown, name: string): string {
  if (typeof cause !== 'object' || cause === null) return ''
  // `pg` reports several addresses of one host that all refused as an AggregateError without a code of its own.
  const value: unknown = Reflect.get(cause, name)
  return typeof value === 'string' ? value : ''
}
