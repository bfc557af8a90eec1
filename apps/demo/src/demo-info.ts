import { z } from 'zod'

/** What `GET /studio` says about the second approver: whether this browser is one, and the path that makes it one. */
export const ApproverInfo = z.object({ is: z.boolean(), address: z.string().optional() })
export type ApproverInfo = z.infer<typeof ApproverInfo>

/** The languages of the demo. */
export const LANGUAGES = ['en', 'ja'] as const
export type Language = (typeof LANGUAGES)[number]
