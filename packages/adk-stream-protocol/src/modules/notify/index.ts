export type { NoticeChannel } from './notice.ts'
export { NoticeError } from './notice.ts'
export { slack } from './slack.ts'
export { webhook } from './webhook.ts'
