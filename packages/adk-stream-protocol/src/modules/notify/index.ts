export type { NoticeChannel } from './notice.ts'
export { NoticeError } from './notice.ts'
export { webhook } from './webhook.ts'
