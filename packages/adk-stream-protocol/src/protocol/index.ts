export type { Chunk } from './chunk.ts'
export { CLOSE_CODES } from './server-frame.ts'
export type { ErrorCode } from './errors.ts'
export type { Message } from './message.ts'
