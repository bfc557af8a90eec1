/**
 * The reason why an agent cannot be loaded.
 * - `no-path`: the path does not exist, or is not one of a module
 * - `no-agent`, `several-agents`: the file exports no agent, or more than one
 * - `syntax`, `missing-module`, `threw`, `ended`: the file cannot be run
 * - `no-typescript`: this version of Node needs a package for TypeScript
 * - `env-file`: a file with environment variables cannot be read
 * - `two-copies`, `unsupported-adk`: ADK is installed twice, or in a version that does not work
 * - `no-key`: the model needs a key
 * - `unservable`: a bridge cannot serve the agent
 * - `store`: the database cannot be opened
 */
export type LoadErrorCode =
  | 'no-path'
  | 'no-agent'
  | 'several-agents'
  | 'syntax'
  | 'missing-module'
  | 'threw'
  | 'ended'
  | 'no-typescript'
  | 'env-file'
  | 'two-copies'
  | 'unsupported-adk'
  | 'no-key'
  | 'unservable'
  | 'store'

/** A place in a file. Lines and columns start with 1. */
export interface Place {
  readonly file: string
  readonly line?: number | undefined
  readonly column?: number | undefined
}

/** An agent cannot be loaded. The message is one sentence for the terminal that names the file, and the line if it is known. */
export class LoadError extends Error {
  override readonly name = 'LoadError'
  readonly code: LoadErrorCode
  readonly place: Place | undefined

  constructor(
    code: LoadErrorCode,
    message: string,
    options?: ErrorOptions & { readonly place?: Place | undefined },
  ) {
    super(message, options)
    this.code = code
    this.place = options?.place
  }
}
