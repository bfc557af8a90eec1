import { createECDH, createHash } from 'node:crypto'

import { type NoticeChannel, webPush } from 'adk-stream-protocol/notify'

/** The channel that tells the browsers of a person, also while no page is open. */
export const PUSH_CHANNEL = 'phone'

/** Creates the channel. Its keys are derived from a secret of the database, because the subscriptions of browsers belong to them. */
export function createPush(secret: Buffer): NoticeChannel {
  const keys = createECDH('prime256v1')
  // A hash is practically never zero or above the order of the curve, which `setPrivateKey` refuses.
  const privateKey = createHash('sha256').update(secret).digest()
  keys.setPrivateKey(privateKey)
  return webPush({
    vapid: {
      publicKey: keys.getPublicKey('base64url'),
      privateKey: privateKey.toString('base64url'),
    },
    subject: 'mailto:demo@example.com',
  })
}
