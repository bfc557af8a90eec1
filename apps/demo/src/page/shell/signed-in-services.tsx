import type { SignedInService } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import { api } from '../wire/wire.ts'
import { Setting } from './setting.tsx'

/** Lists the services that the person has signed in to, whenever the popover opens. Signing out revokes the access. */
export function SignedInServices({ popoverId }: { readonly popoverId: string }) {
  const { settings } = useLabels().shell
  const isAvailable = useDemo()?.signIn === true
  const [services, setServices] = useState<readonly SignedInService[]>([])
  const [message, setMessage] = useState('')
  useEffect(() => {
    const popover = document.getElementById(popoverId)
    if (!isAvailable || !popover) return undefined
    const onToggle = (event: ToggleEvent): void => {
      if (event.newState !== 'open') return
      setMessage('')
      // If this fails, the list stays as it was.
      void api.listSignIns().then(setServices, () => undefined)
    }
    popover.addEventListener('toggle', onToggle)
    return () => popover.removeEventListener('toggle', onToggle)
  }, [popoverId, isAvailable])
  const signOut = async ({ provider, label }: SignedInService): Promise<void> => {
    try {
      const isRevoked = await api.removeSignIn(provider)
      setMessage(isRevoked ? settings.signedOut(label) : settings.notRevoked(label))
      setServices(await api.listSignIns())
    } catch {
      setMessage(settings.notSignedOut)
    }
  }
  if (services.length === 0 && message === '') return null
  return (
    <Setting name={settings.signIns}>
      <ul className="services" aria-label={settings.signIns}>
        {services.map((service) => (
          <li key={`${service.provider} ${service.scopes.join(' ')}`}>
            <span>{settings.signedInAs(service.label, service.account ?? '')}</span>
            <button type="button" className="outlined" onClick={() => void signOut(service)}>
              {settings.signOut(service.label)}
            </button>
          </li>
        ))}
      </ul>
      <p className="fine" role="status">
        {message}
      </p>
    </Setting>
  )
}
