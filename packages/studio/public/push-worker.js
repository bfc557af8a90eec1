/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-member-access -- Browsers load this file as it is, and the types of pages have no service worker. */
// Shows that an approval waits, also when no page is open. Whoever holds a locked phone can read it, and it has no arguments.
const LABELS = {
  en: {
    asks: 'Needs approval',
    decided: 'Nobody needs to decide any more',
    severity: { low: 'severity low', medium: 'severity medium', high: 'severity high' },
  },
  ja: {
    asks: '承認が必要です',
    decided: '判断はもう必要ありません',
    severity: { low: '重要度: 低', medium: '重要度: 中', high: '重要度: 高' },
  },
}
const labels = LABELS[new URL(self.location).searchParams.get('language')] ?? LABELS.en

self.addEventListener('push', (event) => {
  const { type, approvalId, title, severity, url } = event.data.json()
  const isOpen = type === 'approval.requested' || type === 'approval.reminder'
  const shown = isOpen ? [labels.asks, labels.severity[severity]] : [labels.decided]
  const approval = `/?${new URLSearchParams({ view: 'approvals', approval: approvalId })}`
  event.waitUntil(
    self.registration.showNotification(title, {
      body: shown.filter(Boolean).join(' · '),
      // A later message about the same approval replaces the notification.
      tag: approvalId,
      data: url ?? approval,
      requireInteraction: isOpen,
    }),
  )
})

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  event.waitUntil(self.clients.openWindow(event.notification.data))
})
