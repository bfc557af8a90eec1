import { useId } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { Setting } from '../shell/setting.tsx'
import { useStudio } from '../wire/studio-info.ts'

/** The cookie that names the person. It proves nothing: a server offers people only to the developer at its machine. */
const PERSON_COOKIE = 'adk_studio_person'

/** Selects the person for whom the page is used, to try approvals by others. Shows nothing if there is no choice. */
export function PersonChoice() {
  const { people: labels } = useLabels().shell
  const id = useId()
  const studio = useStudio()
  if (!studio || studio.people.length < 2) return null
  return (
    <Setting name={labels.label}>
      <select
        id={id}
        aria-label={labels.label}
        value={studio.person?.id}
        onChange={({ target }) => choosePerson(target.value)}
      >
        {studio.people.map((person) => (
          <option key={person.id} value={person.id}>
            {person.roles.length === 0
              ? person.name
              : labels.withRoles(person.name, person.roles.join(', '))}
          </option>
        ))}
      </select>
      <p className="fine">{labels.explanation}</p>
    </Setting>
  )
}

/** Loads the page again as another person, whose chats are others. */
function choosePerson(personId: string): void {
  document.cookie = `${PERSON_COOKIE}=${encodeURIComponent(personId)}; path=/; samesite=strict`
  window.location.assign('/')
}
