import { Keyboard, Settings2 } from 'lucide-react'
import { useEffect, useState } from 'react'
import type { SignedInService } from 'adk-stream-protocol/client'

import { IconButton } from '../icon-button.tsx'
import { PersonChoice } from '../developer/person-choice.tsx'
import { SlotContent } from '../plugin/slot-content.tsx'
import { useStudio } from '../wire/studio-info.ts'
import { api } from '../wire/wire.ts'
import { useLanguage, useLabels } from '../i18n/language.tsx'
import { THEMES, useTheme } from '../settings.ts'
import { ConnectionChoice, Segmented } from './mode-switch.tsx'
import { NotificationsChoice } from './notifications-choice.tsx'
import { Setting } from './setting.tsx'

const POPOVER_ID = 'settings'

/** A button that opens the settings. */
export function SettingsMenu({ onShowShortcuts }: { readonly onShowShortcuts: () => void }) {
  const { settings } = useLabels().shell
  return (
    <>
      <IconButton icon={Settings2} label={settings.title} popoverTarget={POPOVER_ID} />
      <section
        id={POPOVER_ID}
        className="popover settings"
        popover="auto"
        aria-label={settings.title}
      >
        <h2>{settings.title}</h2>
        <LanguageChoice />
        <ThemeChoice />
        <NotificationsChoice />
        <SlotContent name="settings" />
        <PersonChoice />
        <ConnectionChoice />
        <SignedInServices popoverId={POPOVER_ID} />
        <ModelFacts />
        <button
          type="button"
          className="quiet wide-button keys-entry"
          onClick={() => {
            document.getElementById(POPOVER_ID)?.hidePopover()
            onShowShortcuts()
          }}
        >
          <Keyboard aria-hidden="true" />
          {settings.shortcuts}
        </button>
      </section>
    </>
  )
}

function LanguageChoice() {
  const { settings } = useLabels().shell
  const { language, choose } = useLanguage()
  return (
    <Setting name={settings.language}>
      <Segmented
        label={settings.language}
        options={[
          { value: 'en', name: 'English', lang: 'en' },
          { value: 'ja', name: '日本語', lang: 'ja' },
        ]}
        value={language}
        onChoose={choose}
      />
    </Setting>
  )
}

function ThemeChoice() {
  const { settings } = useLabels().shell
  const [theme, choose] = useTheme()
  const options = THEMES.map((value) => ({ value, name: settings.themes[value] }))
  return (
    <Setting name={settings.theme}>
      <Segmented label={settings.theme} options={options} value={theme} onChoose={choose} />
    </Setting>
  )
}

/** Shows the model, and whether it is emulated. */
function ModelFacts() {
  const { emulated, emulatedVoice, shell } = useLabels()
  const studio = useStudio()
  if (!studio) return null
  const { model, liveModel, modes } = studio
  return (
    <Setting name={shell.model.label}>
      <p className="fine">
        <code>{model}</code>
        {liveModel !== undefined && (
          <>
            {' '}
            · <code>{liveModel}</code>
          </>
        )}
      </p>
      {studio.emulated && (
        <p className="fine">
          {emulated} {modes.includes('live') && emulatedVoice}
        </p>
      )}
      <SlotContent name="model" />
    </Setting>
  )
}

/** Lists the services that the person has signed in to, whenever the popover opens. Signing out revokes the access. */
function SignedInServices({ popoverId }: { readonly popoverId: string }) {
  const { settings } = useLabels().shell
  const isAvailable = useStudio()?.signIn === true
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
