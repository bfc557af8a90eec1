import { useEffect, useState } from 'react'

import { useLabels, useLanguage } from '../i18n/language.tsx'
import { type Notifications, useNotifications } from '../settings.ts'
import { useStudio } from '../wire/studio-info.ts'
import { canPush, renewPush, subscribePush, unsubscribePush } from '../wire/push.ts'
import { Segmented } from './mode-switch.tsx'
import { Setting } from './setting.tsx'

/** When the browser shows notifications: never, while the page is hidden, or also while no page is open. */
export function NotificationsChoice() {
  const { settings } = useLabels().shell
  const [chosen, choose] = useNotifications()
  const push = usePush()
  const [problem, setProblem] = useState<string>()
  // Browsers refuse notifications to pages without HTTPS, and do not ask.
  if (!isSecureContext || typeof Notification === 'undefined') return null
  const change = async (value: Notifications): Promise<void> => {
    setProblem(undefined)
    // Browsers ask only in response to a click.
    if (value !== 'off' && (await Notification.requestPermission()) !== 'granted') {
      setProblem(settings.notificationsBlocked)
      value = 'off'
    }
    try {
      if (value === 'push' && push) await subscribePush(push)
      else if (chosen === 'push' && push) await unsubscribePush(push.channel)
      choose(value)
    } catch {
      setProblem(settings.notificationsFailed)
    }
  }
  return (
    <Setting name={settings.notifications}>
      <Segmented
        label={settings.notifications}
        options={[
          { value: 'off', name: settings.notificationsOff },
          { value: 'on', name: settings.notificationsOn },
          ...(push ? [{ value: 'push' as const, name: settings.notificationsPush }] : []),
        ]}
        value={chosen}
        onChoose={(value) => void change(value)}
      />
      <p className="fine" role="status">
        {problem}
      </p>
    </Setting>
  )
}

/** Returns how this browser can be told while no page is open. Keeps its subscription, for whoever uses the page now. */
function usePush() {
  const { push: channel } = useStudio() ?? {}
  const { language } = useLanguage()
  const [chosen, choose] = useNotifications()
  const isChosen = chosen === 'push'
  useEffect(() => {
    if (!isChosen || channel === undefined || !canPush()) return
    // If this fails, the next visit tries it again.
    void renewPush({ channel, language }).then(
      (isKept) => isKept || choose('off'),
      () => undefined,
    )
  }, [isChosen, channel, language, choose])
  return channel !== undefined && canPush() ? { channel, language } : undefined
}
